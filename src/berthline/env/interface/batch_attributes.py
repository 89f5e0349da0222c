"""Attributes of the environments of a batch, as Gymnasium's vector environments have them."""

from __future__ import annotations

from typing import Any

from berthline.errors import ConfigError

_OF_ONE = ("episode_key", "log", "question", "start", "workload")
"""Methods that take the number of an environment."""
_ROWS = ("action_masks", "render")
"""Methods that return something for each environment."""


class HasAttributes:
    """Base of a batch: `call`, `get_attr` and `set_attr`, although there is only one object."""

    num_envs: int
    _own_attributes: dict[str, tuple[Any, ...]]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, and return what each one returns.

        A method about one environment, such as `log`, is called for each; `action_masks` gives
        everyone its own; any other method of the batch is called once. The value of an attribute
        is returned as `get_attr` does.
        """
        found = self._own_attributes.get(name) or self._attribute(name)
        if not callable(found):
            return self.get_attr(name)
        if name in _OF_ONE:
            return tuple(found(env, *args, **kwargs) for env in range(self.num_envs))
        result = found(*args, **kwargs)
        if name in _ROWS:
            return tuple(result)
        return (result,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every environment; of the batch, the same for all."""
        if name in self._own_attributes:
            return self._own_attributes[name]
        return (self._attribute(name),) * self.num_envs

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment, which `get_attr` returns.

        Args:
            name: a name of your own; attributes of the batch apply to all environments and cannot
                be set.
            values: a list or a tuple with a value for each, or one value for all.

        Raises:
            ConfigError: an attribute of the batch, or another number of values.
        """
        if hasattr(self, name) and name not in self._own_attributes:
            raise ConfigError(
                f"the attribute {name!r} belongs to the batch",
                where="set_attr",
                expected="a name of your own",
                hint="set_load() changes the load of later episodes; for other options, make new "
                "environments",
            )
        if not isinstance(values, list | tuple):
            values = (values,) * self.num_envs
        if len(values) != self.num_envs:
            raise ConfigError(
                f"{len(values)} values for {name!r}",
                where="set_attr",
                expected=f"{self.num_envs}, one each, or one value for all",
            )
        self._own_attributes[name] = tuple(values)

    def _attribute(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{name!r} is private")
        return getattr(self, name)

    def _attributes_of(self, envs: list[int]) -> dict[str, tuple[Any, ...]]:
        """Return the attributes that were set, of some environments."""
        return {
            name: tuple(values[env] for env in envs)
            for name, values in self._own_attributes.items()
        }
