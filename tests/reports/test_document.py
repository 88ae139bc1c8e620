"""The document around a page's sections."""

from rollwise.reports.html import html_page


def test_a_page_holds_its_parts_in_order_and_asks_for_nothing() -> None:
    page = html_page("a < b", ["<p>one</p>", "", "<p>two</p>"], css="p { color: red; }", script="run();")
    title, style, script = "<title>a &lt; b</title>", "<style>p { color: red; }</style>", "<script>run();</script>"
    order = [title, style, "<main>", "<p>one</p>\n<p>two</p>", "</main>", script]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert page.startswith("<!DOCTYPE html>")
    assert not any(asks in page for asks in ("src=", "href=", "url("))
