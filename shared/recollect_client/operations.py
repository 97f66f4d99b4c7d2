"""Methods of both clients from one description: it says what to ask for, and the client that has it sends that."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from recollect_client.answers.graphs import Change
from recollect_client.changes import ChangeFeed
from recollect_client.requests import PagedRequest, Request
from recollect_client.senders import AsyncSender, SyncSender

P = ParamSpec("P")
T = TypeVar("T")


class operation(Generic[P, T]):
    """A method with one answer. `describe` returns the request; called on a client, the method returns the answer."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Request[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncSender, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: SyncSender | AsyncSender | None, owner: type) -> Any:
        if client is None:
            return self
        return _calling(client.send, self.describe.__get__(client))


class listing(Generic[P, T]):
    """A method whose answer is a list in pages: called on a client, it returns an iterator over all items."""

    def __init__(self, describe: Callable[Concatenate[Any, P], PagedRequest[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncSender, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, client: SyncSender | AsyncSender | None, owner: type) -> Any:
        return self if client is None else _calling(client.pages, self.describe.__get__(client))


class following(Generic[P]):
    """A method whose answer is a stream of changes: called on a client, it returns an iterator without end."""

    def __init__(self, describe: Callable[Concatenate[Any, P], ChangeFeed]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncSender, owner: type) -> Callable[P, Iterator[Change]]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, AsyncGenerator[Change, None]]: ...
    def __get__(self, client: SyncSender | AsyncSender | None, owner: type) -> Any:
        return self if client is None else _calling(client.follow, self.describe.__get__(client))


def _calling(send: Callable[[Any], Any], describe: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a client, with the name, the arguments and the description of what describes it."""

    @wraps(describe)
    def call(*args: Any, **kwargs: Any) -> Any:
        return send(describe(*args, **kwargs))

    return call
