"""Groups of the new protocol (KIP-848): the coordinator assigns, members reconcile.

A heartbeat updates the member and the group's epoch (`heartbeats`), the target is assigned anew
where the epoch has grown (`assigning`), and each member goes from what it owns to its target,
giving up first and taking what others have given up (`reconciling`).
"""
