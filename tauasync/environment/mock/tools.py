"""The mock domain's tools: the smallest world in which both sides can act."""

from __future__ import annotations

from msgspec.structs import replace

from tauasync.environment.database import Table
from tauasync.environment.mock.records import (
    Inbox,
    ListedTask,
    Notification,
    NotificationStatus,
    TaskList,
    TaskStatus,
    User,
)
from tauasync.environment.tool import ToolKind, tool
from tauasync.environment.toolkit import Toolkit, is_text
from tauasync.errors import DataError


class MockTools(Toolkit[TaskList]):
    """The agent's side: keeping the task list."""

    @tool(ToolKind.WRITE)
    def create_task(self, user_id: str, title: str, description: str | None = None) -> ListedTask:
        """Put a new, pending task on a user's list.

        Args:
            user_id: whose task it is.
            title: what is to be done, in a few words.
            description: what more there is to know, if anything.

        Raises:
            ValueError: there is no such user.
            TypeError: title or description is no text.
        """
        user = self._user(user_id)
        if not is_text(title) or not (description is None or is_text(description)):
            raise TypeError("title and description must be text")
        task = ListedTask(
            task_id=f"task_{len(self.db.tasks) + 1}",
            title=title,
            description=description,
            status=TaskStatus.PENDING,
        )
        self.db.tasks.put(task.task_id, task)
        self.db.users.put(user_id, replace(user, tasks=(*user.tasks, task.task_id)))
        return task

    @tool(ToolKind.READ)
    def get_users(self) -> list[User]:
        """List all users with the ids of their tasks."""
        return list(self.db.users.values())

    @tool(ToolKind.WRITE)
    def update_task_status(self, task_id: str, status: TaskStatus) -> ListedTask:
        """Set the status of a task.

        Args:
            task_id: the task, e.g. task_7.
            status: pending or completed.

        Raises:
            ValueError: there is no such task.
        """
        task = replace(self._task(task_id), status=status)
        self.db.tasks.put(task_id, task)
        return task

    @tool(ToolKind.GENERIC)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the conversation over to a human colleague.

        Only where the policy asks for it or your tools cannot help.

        Args:
            summary: what the user needs.
        """
        del summary
        return "Transfer successful"

    def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
        """Whether the user has so many tasks.

        Raises:
            ValueError: there is no such user.
        """
        return len(self._user(user_id).tasks) == expected_number

    def assert_task_status(self, task_id: str, expected_status: TaskStatus) -> bool:
        """Whether the task is in a status.

        Raises:
            ValueError: there is no such task.
        """
        return self._task(task_id).status == expected_status

    def _user(self, user_id: str) -> User:
        user = self.db.users.get(user_id)
        if user is None:
            raise ValueError(f"User {user_id} not found")
        return user

    def _task(self, task_id: str) -> ListedTask:
        task = self.db.tasks.get(task_id)
        if task is None:
            raise ValueError(f"Task {task_id} not found")
        return task


class MockUserTools(Toolkit[Inbox]):
    """The user's side: an inbox."""

    @tool(ToolKind.READ)
    def check_notifications(self) -> list[Notification]:
        """List the notifications in your inbox."""
        return list(self._inbox.values())

    @tool(ToolKind.WRITE)
    def dismiss_notification(self, notification_id: str) -> str:
        """Mark a notification in your inbox as read.

        Args:
            notification_id: the notification, e.g. notif_3.

        Raises:
            ValueError: there is no such notification.
        """
        read = replace(self._notification(notification_id), status=NotificationStatus.READ)
        self._inbox.put(notification_id, read)
        return f"Notification {notification_id} dismissed"

    def add_notification(
        self, notification_id: str, message: str, task_id: str | None = None
    ) -> None:
        """Put an unread notification into the inbox, in place of one with the same id."""
        notification = Notification(
            notification_id=notification_id, message=message, task_id=task_id
        )
        self._inbox.put(notification_id, notification)

    def assert_notification_status(self, notification_id: str, expected_status: str) -> bool:
        """Whether the notification is in a status.

        Raises:
            ValueError: there is no such notification.
        """
        return self._notification(notification_id).status == expected_status

    @property
    def _inbox(self) -> Table[Notification]:
        if not _is_inbox(self.db):
            # The benchmark leaves the user on the agent's database after `agent_data`.
            raise DataError("the inbox is gone: initialization_data.agent_data took its place")
        return self.db.notifications

    def _notification(self, notification_id: str) -> Notification:
        notification = self._inbox.get(notification_id)
        if notification is None:
            raise ValueError(f"Notification {notification_id} not found")
        return notification


def _is_inbox(database: object) -> bool:
    return isinstance(database, Inbox)
