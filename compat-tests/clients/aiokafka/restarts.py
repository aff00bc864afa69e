"""The broker stops and comes back."""

from kit import broker, checks, create, fresh, read, send

CHECKS, check = checks()


def resume(order):
    async def function():
        topic, group = await create(), fresh("group")
        await send(topic, [b"a", b"b"])
        assert await read(topic, 2, group_id=group) == [b"a", b"b"]
        await broker(order)
        await send(topic, [b"c"])
        assert await read(topic, 1, group_id=group) == [b"c"]
        assert await read(topic, 3) == [b"a", b"b", b"c"]

    function.__name__ = f"resume_after_{order}"
    check(function)


resume("term")
resume("kill")
