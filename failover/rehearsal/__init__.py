"""Rehearsals: the set of topics that no application uses is promoted and taken back under load.

`obstacles` says what is in the way and `schedule` when one is due (pure). `run` does it, with the
load of `load`, which `seen` notes down and `judgement` judges (pure). `outcome` is what is known
of one, `kept` has the witness keep it, and `told` shows it.
"""
