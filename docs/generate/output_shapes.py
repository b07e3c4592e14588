"""Shapes of JSON documents in few words, and the JSON Schema that each stands for.

"string" "integer" "number" "boolean" "any"     a value; "integer?" may be null as well
{"topic": "string", "worker?": "string"}        an object with just these keys; `?`: not always
{"*": "integer"}                                an object with any other keys, too
[SHAPE]                                         a list
(SHAPE, SHAPE)                                  one of these
"""

from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    NotRequired,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Shape: TypeAlias = Any
"""One of the forms above."""
SIMPLE: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(shape: Shape) -> dict[str, Any]:
    """Return the schema of a document of this shape."""
    match shape:
        case str():
            return _of_word(shape)
        case list():
            [item] = shape
            return {"type": "array", "items": schema_of(item)}
        case tuple():
            return {"anyOf": [schema_of(one) for one in shape]}
        case _:
            named = {key: one for key, one in shape.items() if key != "*"}
            return {
                "type": "object",
                "properties": {key.removesuffix("?"): schema_of(one) for key, one in named.items()},
                "required": [key for key in named if not key.endswith("?")],
                "additionalProperties": schema_of(shape["*"]) if "*" in shape else False,
            }


def _of_word(word: str) -> dict[str, Any]:
    kind = word.removesuffix("?")
    if kind == "any":
        return {}
    return {"type": [kind, "null"] if word.endswith("?") else kind}


def shape_of(kind: Any) -> Shape:  # noqa: ANN401 - an annotation
    """Return the shape of what a TypedDict, or a plain annotation, says."""
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {
            f"{key}?" if get_origin(one) is NotRequired else key: shape_of(
                get_args(one)[0] if get_origin(one) is NotRequired else one
            )
            for key, one in hints.items()
        }
    if get_origin(kind) is list:
        return [shape_of(get_args(kind)[0])]
    if get_origin(kind) is UnionType:
        [inner] = [one for one in get_args(kind) if one is not NoneType]
        shape = shape_of(inner)
        return f"{shape}?" if isinstance(shape, str) else (shape, "null")
    return SIMPLE[kind]
