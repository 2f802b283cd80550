"""The mock domain's records and databases: a task list, and an inbox of notifications."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tauasync.environment.database import Database, Table


class TaskStatus(StrEnum):
    """How far a task of the list has come."""

    PENDING = "pending"
    COMPLETED = "completed"


class NotificationStatus(StrEnum):
    """Whether a notification has been seen to."""

    UNREAD = "unread"
    READ = "read"


class ListedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of the list.

    `status` can hold any JSON value during an episode: the tool that sets it checks nothing.
    """

    task_id: str
    title: str
    description: str | None = None
    status: TaskStatus


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user, with their tasks by id."""

    user_id: str
    name: str
    tasks: tuple[str, ...]


class Notification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message in the user's inbox."""

    notification_id: str
    message: str
    status: NotificationStatus = NotificationStatus.UNREAD
    task_id: str | None = None


class TaskListFile(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of `db.json`."""

    tasks: dict[str, ListedTask]
    users: dict[str, User]


class InboxFile(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of `user_db.json`."""

    notifications: dict[str, Notification] = msgspec.field(default_factory=dict)


class TaskList(Database):
    """The agent's database."""

    shape = TaskListFile

    tasks: Table[ListedTask]
    users: Table[User]


class Inbox(Database):
    """The user's database."""

    shape = InboxFile

    notifications: Table[Notification]
