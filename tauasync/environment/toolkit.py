"""A toolkit: the tools of one side over its database, and the helpers beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from tauasync.environment.database import Database
from tauasync.environment.tool import Tool, collect
from tauasync.types import ToolSpec

D = TypeVar("D", bound=Database)


class Toolkit(Generic[D]):
    """Base of a domain's toolkits; subclasses add methods marked with `@tool`.

    Public methods without the mark are helpers: tasks call them to set the scene and to
    assert the end, models cannot reach them.
    """

    tools: ClassVar[Mapping[str, Tool]] = {}
    shown: ClassVar[tuple[ToolSpec, ...]] = ()
    """What a model sees; one tuple for all episodes, so that work done on it is done once."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.tools = collect(cls)
        cls.shown = tuple(tool.spec for tool in cls.tools.values() if not tool.discoverable)

    def __init__(self, db: D) -> None:
        self.db = db

    @property
    def database(self) -> Database:
        """The overlay this side reads and writes."""
        return self.db

    def attach(self, db: D) -> None:
        """Work on another database from now on."""
        self.db = db

    def use(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool, discoverable ones included.

        Raises:
            LookupError: no such tool; helpers do not count.
            Exception: whatever the tool raises, for the environment to turn into text.
        """
        if name not in self.tools:
            raise LookupError(f"Tool '{name}' not found.")
        return getattr(self, name)(**arguments)

    def run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool or helper on behalf of a task.

        Raises:
            LookupError: the toolkit has no such public function.
        """
        if name.startswith("_") or not callable(function := getattr(self, name, None)):
            raise LookupError(f"{type(self).__name__} has no function '{name}'")
        return function(**arguments)


def is_text(given: object) -> bool:
    """Whether an argument is a text: a model may send any JSON, whatever the annotation says."""
    return isinstance(given, str)
