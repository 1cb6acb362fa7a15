package console

import (
	"html/template"
	"net/http"
	"regexp"
	"strings"

	"github.com/firstcome/firstcome/docs/runbooks"
)

// A card is a document with one table, as the help shows it.
type card struct {
	Title string
	Intro []template.HTML // paragraphs before the table
	Head  []string
	Rows  [][]template.HTML
}

// cards are the cards for the day of an event.
var cards = map[language]card{korean: cardOf(runbooks.EventDayKorean), english: cardOf(runbooks.EventDay)}

func (c *Console) showHelp(v *view) error {
	return v.render(http.StatusOK, "help", v.say("도움말", "Help"), cards[v.lang.language])
}

// cardOf parses our own Markdown: a title, paragraphs and a table. It leaves out paragraphs with links, because they lead to documents that the
// console does not have.
func cardOf(text string) (c card) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		title, isTitle := strings.CutPrefix(line, "# ")
		switch {
		case isTitle:
			c.Title = title
		case strings.HasPrefix(line, "|--"), line == "", strings.Contains(line, "]("):
		case strings.HasPrefix(line, "|"):
			c.add(strings.Split(strings.Trim(line, "|"), "|"))
		default:
			c.Intro = append(c.Intro, inline(line))
		}
	}
	return c
}

// add adds the next row of the table. The first row is its head.
func (c *card) add(cells []string) {
	if c.Head == nil {
		for _, cell := range cells {
			c.Head = append(c.Head, strings.TrimSpace(cell))
		}
		return
	}
	row := make([]template.HTML, len(cells))
	for n, cell := range cells {
		row[n] = inline(strings.TrimSpace(cell))
	}
	c.Rows = append(c.Rows, row)
}

var (
	codeMark = regexp.MustCompile("`([^`]+)`")
	nameMark = regexp.MustCompile(`\*([^*]+)\*`)
)

// inline renders a line of Markdown, with its emphasis and code.
func inline(text string) template.HTML {
	text = codeMark.ReplaceAllString(template.HTMLEscapeString(text), "<code>$1</code>")
	return template.HTML(nameMark.ReplaceAllString(text, "<em>$1</em>")) //nolint:gosec // our own document, escaped
}
