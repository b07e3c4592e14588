"""Rights of applications on both sites, and rights of our programs.

`travelling` says which entries the target is given, and `quotas` which quotas. `refused` compares
both sites' entries, `outlook` asks both sites for what that takes. `needed` has our own.
"""
