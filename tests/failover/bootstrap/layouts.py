"""What messages are made of, by the names of their fields."""

from wire.schema.plan import Array, FieldPlan, Structure, plan


def field_names(layout: FieldPlan) -> set[str]:
    """Return the names of all fields, also those of structures inside."""
    names: set[str] = set()
    for slot in layout.present + layout.tagged:
        names.add(slot.name)
        shape = slot.shape
        while isinstance(shape, Array):
            shape = shape.element
        if isinstance(shape, Structure):
            names |= field_names(plan(shape.cls, layout.version, flexible=layout.flexible))
    return names
