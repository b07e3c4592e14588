"""Who the pair is and which site is active, as the witness and both clusters remember it.

`evidence` is what each cluster carries and how it is held against the witness (pure);
`evidence_topic` reads and writes it on a cluster, `evidence_number` counts its writings, and
`rivals` finds other pairs there. `opening` looks at all three before a program acts, and makes the
witness at the first start of a pair. `recovery` decides what a witness that has lost its memory is
restored to (pure).
"""
