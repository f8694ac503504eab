"""What is said over HTTP: the requests and the replies. ``docs/http.md`` has each by example.

Here are the values that they are made of.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

#: A name goes into addresses and files.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
#: Never clipped, never rounded: NaN, true and "0.5" are refused, and what is outside of [0, 1] or of the scale.
Loss = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Arm = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,8})$")]
#: For feedback that was scaled where it comes from: to scale it once more would teach something else.
Plain = Annotated[
    bool,
    Field(
        strict=True,
        description="whether these are losses from 0 to 1 already; an experiment that has a scale then refuses them",
    ),
]
#: RFC 3339, in UTC.
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
#: From which one on a list is shown.
Offset = Annotated[int, Field(ge=0, lt=2**31)]


class Body(BaseModel):
    """The body of a request: a name that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid")
