package console_test

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/stage"
)

// A screen shows pages to a person: it is a tab of a real browser, or a reader. Selectors are CSS.
type screen interface {
	Go(url string)
	Type(selector, text string)
	Press(selector string)
	Await(text string)
	Gone(selector string)
	Download(selector string) []byte
}

// A reader uses the links and forms of pages as a browser without script does.
type reader struct {
	*visitor
	page shown
	root *element
}

func (h *house) reader() *reader { return &reader{visitor: h.browser()} }

func (r *reader) show(page shown) { r.page, r.root = page, parse(r.h.t, page.body) }

func (r *reader) Go(url string) {
	r.h.t.Helper()
	r.show(r.get(strings.TrimPrefix(url, r.h.url)))
}

// one returns the first element that a selector selects.
func (r *reader) one(selector string) *element {
	r.h.t.Helper()
	found := r.root.all(selector)
	if len(found) == 0 {
		r.h.t.Fatalf("%s has no %s: %s", r.page.uri, selector, r.page.body)
	}
	return found[0]
}

func (r *reader) Type(selector, text string) {
	r.h.t.Helper()
	e := r.one(selector)
	e.attr["value"], e.text = text, text
}

// Press follows a link, sends a form, or chooses.
func (r *reader) Press(selector string) {
	r.h.t.Helper()
	e := r.one(selector)
	switch form := e.within("form"); {
	case e.name == "a":
		r.show(r.get(e.attr["href"]))
	case e.name == "button" && form != nil:
		r.send(form, e)
	case e.attr["type"] == "radio":
		for _, other := range form.all("[name=" + e.attr["name"] + "]") {
			delete(other.attr, "checked")
		}
		e.attr["checked"] = ""
	case e.name != "summary": // a reader sees the text of closed elements too
		r.h.t.Fatalf("nothing happens if somebody presses %s", selector)
	}
}

func (r *reader) send(form, button *element) {
	r.h.t.Helper()
	values := url.Values{}
	if name := button.attr["name"]; name != "" {
		values.Set(name, button.attr["value"])
	}
	for _, e := range form.all("[name]") {
		name, value := e.attr["name"], e.attr["value"]
		_, checked := e.attr["checked"]
		_, required := e.attr["required"]
		switch kind := e.attr["type"]; {
		case e.name == "button" || (kind == "radio" || kind == "checkbox") && !checked:
			continue
		case e.name == "textarea":
			value = e.text
		case e.name == "select":
			value = slices.Concat(e.all("option[selected]"), e.all("option"))[0].attr["value"]
		}
		if required && value == "" {
			r.h.t.Fatalf("the form of %s is sent without %s", r.page.uri, name)
		}
		values.Add(name, value)
	}
	if form.attr["method"] == "post" {
		r.show(r.post(form.attr["action"], values))
		return
	}
	r.show(r.get(form.attr["action"] + "?" + values.Encode()))
}

// Await reloads the page until it has a text.
func (r *reader) Await(text string) {
	r.h.t.Helper()
	r.until("never said "+text, func() bool { return strings.Contains(html.UnescapeString(r.page.text()), text) })
}

func (r *reader) Gone(selector string) {
	r.h.t.Helper()
	r.until("still has "+selector, func() bool { return len(r.root.all(selector)) == 0 })
}

func (r *reader) until(what string, holds func() bool) {
	r.h.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); {
		if r.page.method != http.MethodGet || time.Now().After(end) {
			r.h.t.Fatalf("%s %s: %s", r.page.uri, what, r.page.text())
		}
		r.show(r.get(r.page.uri))
	}
}

func (r *reader) Download(selector string) []byte {
	r.h.t.Helper()
	return []byte(r.get(r.one(selector).attr["href"]).body)
}

// An element is an element of a page.
type element struct {
	name     string
	attr     map[string]string
	text     string // its own text, without that of its children
	children []*element
	parent   *element
}

// parse returns the elements of a page. Every element of our pages is closed.
func parse(t testing.TB, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{}
	for at := root; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root
		}
		stage.Must(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attr: map[string]string{}, parent: at}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			at.children = append(at.children, e)
			at = e
		case xml.EndElement:
			at = at.parent
		case xml.CharData:
			at.text += string(token)
		}
	}
}

// all returns the elements below e that a selector matches, in the order of the page.
func (e *element) all(selector string) (found []*element) {
	for _, child := range e.children {
		if child.selected(strings.Fields(selector)) {
			found = append(found, child)
		}
		found = append(found, child.all(selector)...)
	}
	return found
}

// selected reports whether e matches the last part, and its ancestors match the parts before.
func (e *element) selected(parts []string) bool {
	last := len(parts) - 1
	if !e.is(parts[last]) {
		return false
	}
	for e = e.parent; last > 0 && e != nil; e = e.parent {
		if e.is(parts[last-1]) {
			last--
		}
	}
	return last == 0
}

// within returns e or its nearest ancestor that matches, or nil.
func (e *element) within(what string) *element {
	for e != nil && !e.is(what) {
		e = e.parent
	}
	return e
}

// simple is one part of a selector: a negation, a class, an attribute, or a name.
var simple = regexp.MustCompile(`:not\((.+?)\)|\.([\w-]+)|\[([\w-]+)(?:([$*]?)='?([^\]']*)'?)?\]|^(\w+)`)

func (e *element) is(what string) bool {
	for _, part := range simple.FindAllStringSubmatch(what, -1) {
		value, holds := e.attr[part[3]]
		switch {
		case part[1] != "":
			holds = !e.is(part[1])
		case part[2] != "":
			holds = slices.Contains(strings.Fields(e.attr["class"]), part[2])
		case part[6] != "":
			holds = e.name == part[6]
		case part[4] == "$":
			holds = strings.HasSuffix(value, part[5])
		case part[4] == "*":
			holds = strings.Contains(value, part[5])
		case part[5] != "":
			holds = value == part[5]
		}
		if !holds {
			return false
		}
	}
	return true
}
