package documents

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHTML(t *testing.T) {
	for _, c := range []struct{ name, source, title, want string }{
		{"headings by level", "<h1>One</h1><p>a</p><h3>Three</h3>b", "One", "# One\n\na\n\n### Three\n\nb"},
		{"the title is that of the head", "<head><title> A\n title </title></head><h1>One</h1>", "A title", "# One"},
		{"a heading is one line", "<h2>One<br>two <div>three</div></h2>x", "", "## One two three\n\nx"},
		{"a heading without its end", "<h2>One<p>two<p>three", "", "## One\n\ntwo\n\nthree"},
		{"an empty heading", "<h2></h2><p>x", "", "x"},
		{"white space is one blank", "a\n\t b<b>c </b> d <i> e</i>", "", "a bc d e"},
		{"lines and paragraphs", "<div>a</div><div>b<br>c</div><p>d</p><p>e", "", "a\nb\nc\n\nd\n\ne"},
		{"lists", "<ul><li>a<li>b<ol><li>c</ol><li><p>d</p></ul>e", "", "- a\n- b\n  - c\n\n- d\n\ne"},
		{"an empty item", "<ul><li><li>a</ul>", "", "- a"},
		{"links keep their text", `see <a href="http://x">the page</a>.`, "", "see the page."},
		{"tables", "<table><tr><th>A</th><th>B</th></tr><tr><td><p>1</p></td><td> <p>2</p></td></tr></table>x", "", "A | B\n1 | 2\n\nx"},
		{"tables without end tags", "<table><tr><td>1<td>2<tr><td>3<td>4</table>", "", "1 | 2\n3 | 4"},
		{"an empty cell at the end", "<table><tr><td>1</td><td></td></tr><tr><td>2</td></tr></table>", "", "1\n2"},
		{"entities", "a &lt;b&gt; &amp; &eacute;&#8364;&nbsp;c", "", "a <b> & é€ c"},
		{"what no reader sees", "a<script>if (x < y) {}</script><style>p{}</style><noscript>n</noscript>" +
			"<template>t<template>u</template>v</template><svg><title>s</title></svg><!-- c -->b", "", "ab"},
		{"the head", "<html><head><meta name=x><style>s</style><title>T</title><script>y</script></head><body>b", "T", "b"},
		{"a head without its end", "<head><title>T</title><p>b", "T", "b"},
		{"a script that closes itself", "a<script/>x</script>b<svg/>c", "", "abc"},
		{"a template without its end", "a<template>b<p>c", "", "a"},
		{"code", "<p>x</p><pre><code>if a {\n\tb &amp;&amp; c\n}\n</code></pre><p>y", "", "x\n\n```\nif a {\n\tb && c\n}\n```\n\ny"},
		{"code with fences", "<pre>```\nx\n```</pre>", "", "````\n```\nx\n```\n````"},
		{"code without its end", "<pre>a\n b", "", "```\na\n b\n```"},
		{"stray ends", "</p></ul></li></pre></h1></table>a</b>", "", "a"},
		{"broken tags", "a <b c <d> e < f <", "", "a e < f <"},
	} {
		t.Run(c.name, func(t *testing.T) {
			title, text := htmlText(c.source)
			if diff := cmp.Diff([]string{c.title, c.want}, []string{title, text}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Neither the stack nor the time may grow out of proportion.
func TestHTMLThatNests(t *testing.T) {
	for _, tag := range []string{"<div>", "<ul><li>x", "<b>", "<table><tr><td>", "<template>", "<svg>", "<", "<!--", "<a ", "</", "&", "<pre>", "<h1>", "<![CDATA["} {
		start := time.Now()
		_, text := htmlText("x" + strings.Repeat(tag, (MaxBytes/32)/len(tag)))
		if took := time.Since(start); !strings.HasPrefix(text, "x") || took > 20*time.Second {
			t.Errorf("%q: %d bytes of text after %v", tag, len(text), took)
		}
	}
}
