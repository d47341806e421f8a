"""How do many cases go through one formula? Frozen dataclasses whose fields are arrays of one length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Columns:
    __slots__ = ()

    """A frozen dataclass whose fields are arrays of one length (or scalars that broadcast)."""

    @classmethod
    def stack(cls, parts: Iterable[Self]) -> Self:
        """Join scalar parts into columns, one row per part."""
        rows = list(parts)
        names = [field.name for field in fields(cast(Any, cls))]
        return cls(**{name: np.array([float(getattr(row, name)) for row in rows]) for name in names})

    def take(self, index: NDArray[Any]) -> Self:
        """The rows at `index` (positions or a mask); scalars stay scalars."""
        chosen = {}
        for field in fields(cast(Any, self)):
            value = np.asarray(getattr(self, field.name))
            chosen[field.name] = value if value.ndim == 0 else value[index]
        return cast(Self, replace(cast(Any, self), **chosen))
