"""Documents made of real markup: whatever the model says, what is markup comes back, and the result is balanced."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tandem.text.html_balance import apply_edits, find_edits
from tandem.text.html_tokens import TokenKind, tokenize
from tests.text import fakes
from tests.text.test_fidelity_properties import CHINESE, ENGLISH, fuzz, translators

INLINE = ("b", "i", "em", "strong", "span", "a", "u", "x-y")
BLOCK = ("p", "div", "h1", "li", "td", "blockquote")
ATTRIBUTES = (
    "",
    ' class="a b"',
    " id='x'",
    ' href="https://example.com/?a=1&amp;b=2"',
    " hidden",
    ' title="点击 &quot;保存&quot;"',
)
WHOLE = (
    *("<br>", "<br/>", "<hr>", '<img src="a.png" alt="图 1">', "<!-- 注释 <b> -->", "<wbr>", "&amp;", "&lt;", "&copy;"),
    *("<script>if (a < b) { x('保存') }</script>", "<style>p > b { color: red }</style>", "&nbsp;", "&#8364;"),
    *("<pre>x = 保存(1)\n  y</pre>", "<code>a &lt; b</code>", "<input disabled value='保存'>"),
    '<span translate="no">请 保存</span>',
)
words = st.sampled_from((*CHINESE[:-1], *ENGLISH, "。", "，", ". ", " ", "\n  ", "42", "{name}"))


@st.composite
def elements(draw, inner, names):
    name, attribute = draw(st.sampled_from(names)), draw(st.sampled_from(ATTRIBUTES))
    return f"<{name}{attribute}>{''.join(draw(inner))}</{name}>"


inline = st.recursive(
    st.one_of(words, words, st.sampled_from(WHOLE)),
    lambda inner: elements(st.lists(inner, max_size=4), INLINE),
    max_leaves=8,
)
blocks = st.recursive(
    st.lists(inline, max_size=5).map("".join), lambda inner: elements(st.lists(inner, max_size=3), BLOCK), max_leaves=6
)
documents = st.lists(blocks, max_size=4).map("".join)
directions = st.sampled_from((("zh", "en"), ("en", "zh")))


def markup(text):
    """Every tag, reference and comment, without the words between."""
    return [text[t.start : t.end] for t in tokenize(text) if t.kind is not TokenKind.DATA]


def balanced(text):
    """The document as it must come out: what a parser would add is there."""
    return apply_edits(text, find_edits(tokenize(text), len(text), is_xml=False))


def is_balanced(text):
    stack = []
    for token in tokenize(text):
        if token.kind is TokenKind.OPEN:
            stack.append(token.name)
        elif token.kind is TokenKind.CLOSE and (not stack or stack.pop() != token.name):
            return False
    return not stack


@fuzz
@given(documents, translators, directions)
def test_all_markup_comes_back(document, translate, direction):
    translation = fakes.run(document, translate, *direction, format="html").text
    references = re.compile(r"&(?:amp|lt|gt|#?\w+);")
    expected = sorted(mark for mark in markup(balanced(document)) if not references.fullmatch(mark))
    assert sorted(mark for mark in markup(translation) if not references.fullmatch(mark)) == expected
    for kept in ("&copy;", "&nbsp;", "&#8364;", "<code>a &lt; b</code>", '<span translate="no">请 保存</span>'):
        assert translation.count(kept) == document.count(kept), kept


@fuzz
@given(documents, translators, directions)
def test_the_result_is_balanced(document, translate, direction):
    assert is_balanced(fakes.run(document, translate, *direction, format="html").text)


@fuzz
@given(
    st.lists(
        st.sampled_from(
            ("<b>", "</b>", "<p>", "</p>", "<li>", "<i>", "</i>", "<br>", "</br>", "保存", "<td>", "</div>")
        )
    )
)
def test_broken_markup_is_balanced_too(pieces):
    assert is_balanced(fakes.run("".join(pieces), fakes.echo, format="html").text)


@fuzz
@given(st.one_of(st.text(), st.text(alphabet="<>/!-=&;\"' abp\n[]?")), st.booleans())
def test_tokens_are_the_whole_text(text, is_xml):
    tokens = tokenize(text, is_xml=is_xml)
    assert "".join(text[token.start : token.end] for token in tokens) == text


@fuzz
@given(documents, directions)
def test_words_of_the_model_are_escaped(document, direction):
    from tandem.text.solving import Output

    translation = fakes.run(document, lambda request: Output("a < b & c"), *direction, format="html").text
    assert "a < b" not in translation.replace("<script>if (a < b) { x('保存') }</script>", "")
