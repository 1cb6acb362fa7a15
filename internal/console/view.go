package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/figures"
)

//go:embed pages
var pageFiles embed.FS

// A view answers one request of a person.
type view struct {
	*core
	w    http.ResponseWriter
	r    *http.Request
	form url.Values // from the body, or from the query of a GET
	lang locale
	who  person
}

func (c *core) newView(w http.ResponseWriter, r *http.Request) *view {
	return &view{core: c, w: w, r: r, lang: c.locale(languageOf(r))}
}

// say returns a sentence in the person's language.
func (v *view) say(ko, en string, args ...any) string { return v.lang.say(ko, en, args...) }

// may reports whether the person is among these callers.
func (v *view) may(w auth.Who) bool { return w.HasRole(v.who.Role) }

// enter finds out who the person is, and returns an error if they may not use the page.
func (v *view) enter(allowed auth.Who) error {
	if l := v.r.URL.Query().Get("lang"); l != "" {
		http.SetCookie(v.w, &http.Cookie{Name: languageCookie, Value: string(v.lang.language), Path: Root, MaxAge: 365 * 24 * 60 * 60, HttpOnly: true, Secure: v.Secure, SameSite: http.SameSiteLaxMode})
	}
	if allowed == auth.Everyone {
		return nil
	}
	who, err := v.person(v.w, v.r)
	if err != nil {
		return err
	}
	v.who = who
	if !v.may(allowed) {
		return errRole
	}
	return nil
}

// maxForm is the longest form, in bytes: the largest benefit has 48 KiB, escaped.
const maxForm = 64 << 10

// readForm reads the form or the query. It refuses text that not every ledger can keep: PostgreSQL takes no NUL.
func (v *view) readForm() error {
	if err := v.parseForm(); err != nil {
		return err
	}
	for name, values := range v.form {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return &firstcome.FieldError{Field: strconv.QuoteToASCII(name), Reason: v.say("UTF-8이 아니거나 NUL이 있습니다", "must be UTF-8 without NUL")}
			}
		}
	}
	return nil
}

// parseForm sets form. The body of a GET is ignored.
func (v *view) parseForm() error {
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		v.form = v.r.URL.Query()
		return nil
	}
	media, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if v.r.ContentLength != 0 && (err != nil || media != "application/x-www-form-urlencoded") {
		return errMedia
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return fmt.Errorf("%w: %w", errMedia, err)
	}
	v.form = v.r.PostForm
	return nil
}

// campaign returns the campaign id in the path.
func (v *view) campaign() (firstcome.CampaignID, error) {
	id, err := firstcome.ParseCampaignID(v.r.PathValue("id"))
	if err != nil {
		return "", firstcome.ErrNoCampaign
	}
	return id, nil
}

// redirect redirects the browser to a page of the console.
func (v *view) redirect(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// redirectDone redirects the browser to a page that says what was just done, by a word of doneWords.
func (v *view) redirectDone(path string, query url.Values, done string) error {
	words, ok := doneWords[done]
	if !ok {
		panic(fmt.Sprintf("a form has done %q, and no page says so", done)) // a mistake in the program, which tests find
	}
	return v.redirectSaid(path, query, words)
}

// redirectSaid redirects the browser to a page that says what was just done. The link has this in sealed form, for one page and for a short time. So a
// made-up or an old link shows nothing.
func (v *view) redirectSaid(path string, query url.Values, done sentence) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("done", v.seal.note(doneNote{Korean: done.ko, English: done.en, Path: path, At: v.Clock()}))
	return v.redirect(path + "?" + query.Encode())
}

// A sheet is the data of a template. Page is the data of the page itself.
type sheet struct {
	Title    string
	Lang     locale
	Who      person
	Open     bool // development mode: nobody logs in
	Path     string
	Query    url.Values
	Campaign *campaignTabs // nil if the page does not belong to a campaign
	Notice   string        // says what was just done
	Now      time.Time
	Page     any
}

// Other returns the same page in the other language, and that language.
func (s sheet) Other() (link string) {
	query := url.Values{}
	for name, values := range s.Query {
		query[name] = values
	}
	other := english
	if s.Lang.language == english {
		other = korean
	}
	query.Set("lang", string(other))
	return s.Path + "?" + query.Encode()
}

// May tells a template whether the person may do what these roles may: "run", "support" or "admin". It panics on another word, so that tests
// find a misspelt one.
func (s sheet) May(what string) bool {
	roles, ok := map[string]auth.Who{"run": run, "support": look, "admin": auth.Admin}[what]
	if !ok {
		panic(fmt.Sprintf("a page asks who may %q", what))
	}
	return roles.HasRole(s.Who.Role)
}

// Wall reports whether the page is Live for a screen on the wall, without navigation.
func (s sheet) Wall() bool { return s.Campaign != nil && s.Campaign.Tab == "" && s.Query.Has("wall") }

// A campaignTabs has the campaign to whose pages the tabs lead.
type campaignTabs struct {
	ID   firstcome.CampaignID
	Name string
	Tab  string // the last part of the open page's path; empty for Live
}

// A link leads to a page. Here is set if that page is shown now.
type link struct {
	Path, Text string
	Here       bool
}

func navTo(s sheet, path, text string) link {
	here := s.Path == path || path != Root && strings.HasPrefix(s.Path, path+"/") || path == Root && s.Campaign != nil
	return link{path, text, here}
}

func tabTo(t *campaignTabs, tab, text string) link {
	path := Root + "/campaigns/" + string(t.ID)
	if tab != "" {
		path += "/" + tab
	}
	return link{path, text, t.Tab == tab}
}

// gradeOf returns the CSS class for the grade of a finding.
func gradeOf(g doctor.Grade) string { return strings.ToLower(string(g)) }

// render answers with a page.
func (v *view) render(status int, name, title string, page any) error {
	return v.renderOf(nil, status, name, title, page)
}

// renderOf answers with a page of a campaign.
func (v *view) renderOf(tabs *campaignTabs, status int, name, title string, page any) error {
	var out bytes.Buffer
	err := v.sheets[v.lang.language].byName[name]().ExecuteTemplate(&out, "layout", sheet{
		Notice: v.done(), Title: title, Lang: v.lang, Who: v.who, Open: v.Auth.Open(), Path: v.shown(v.r), Query: v.r.URL.Query(), Campaign: tabs, Now: v.Clock(), Page: page,
	})
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = out.WriteTo(v.w) // a client that is gone is no error
	return nil
}

// done returns the sentence about what was just done, if the link that led here has one.
func (v *view) done() string {
	note, ok := v.seal.noted(v.r.URL.Query().Get("done"))
	if !ok || note.Path != v.r.URL.Path || v.Clock().Sub(note.At) > noteLasts {
		return ""
	}
	return v.say(note.Korean, note.English)
}

// doneWords says for each act that it was done.
var doneWords = map[string]sentence{
	"paused":   {"일시중지했습니다.", "Paused."},
	"resumed":  {"재개했습니다.", "Resumed."},
	"closed":   {"종료했습니다.", "Closed."},
	"created":  {"캠페인을 만들었습니다.", "Campaign created."},
	"issued":   {"쿠폰을 발급했습니다.", "Coupon issued."},
	"voided":   {"회수했습니다.", "Voided."},
	"replayed": {"다시 기록했습니다.", "Recorded."},
	"rebuilt":  {"게이트를 재구성했습니다. 발급을 다시 시작합니다.", "The gate is rebuilt, and decides again."},
	"revoked":  {"키를 폐기했습니다.", "Key revoked."},
}

// sheets are the templates in one language: each page with the layout and the shared parts. A page is parsed when it is first opened: all pages
// together are 66,000 small objects, which every garbage collection would have to follow.
type sheets struct {
	byName map[string]func() *template.Template
}

func parseSheets(l locale, a *assets) *sheets {
	shared := template.New("").Funcs(template.FuncMap{
		"t": l.say, "number": l.number, "quantity": l.quantity, "date": l.date, "ago": l.ago, "exact": l.exact, "milli": l.milli, "spoken": l.said, "span": l.span, "percent": percent, "rate": rate, "figure": figureOf[uint64], "tenth": func(n float64) string { return humanize.CommafWithDigits(n, 1) }, "whole": func(n *float64) string { return humanize.CommafWithDigits(math.Round(*n), 0) }, "field": fieldOf, "linefields": lineFieldsOf, "prizefields": l.prizeFieldsOf, "ranks": l.ranks, "stock": func(rank int64, prize string, n nextPrize) string { return l.voidedStock(couponPrize{rank, prize}, n) }, "nextrank": l.nextRank, "wrongat": wrongAt, "grade": gradeOf, "role": l.role, "outcome": l.outcome, "state": l.state, "inVain": func() []string { return inVain }, "withoutOutcome": func() []string { return withoutOutcome }, "cause": l.cause, "why": l.why, "whys": func() []string { return figures.Whys }, "instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }, "millis": millis, "asset": a.path,
		"ko": func() bool { return l.language == korean }, "looked": looked, "advice": advice,
		"nav": navTo, "tab": tabTo, "tip": l.tip, "both": l.both, "zone": l.zoneWord, "words": l.words, "glossary": func() []term { return glossary },
	})
	shared = template.Must(shared.ParseFS(pageFiles, "pages/layout.html", "pages/parts/*.html"))
	all := &sheets{map[string]func() *template.Template{}}
	files, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "pages/"), ".html")
		if name != "layout" {
			all.byName[name] = sync.OnceValue(func() *template.Template {
				return template.Must(template.Must(shared.Clone()).ParseFS(pageFiles, file))
			})
		}
	}
	return all
}
