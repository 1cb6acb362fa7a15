package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Journal has a node's access to the coupons between gate and ledger.
type Journal struct {
	Gate string // the gate's name in campaigns
	// Lag returns how far the ledger lags behind the gate, for each campaign with unrecorded coupons. record.ErrUnaged may come with lags.
	Lag func(context.Context) ([]record.Lag, error)
	// Recorder returns the counters of this node's recorder. It is nil if the node records nothing.
	Recorder func() record.Stats
	// Relay returns the counters of this node's relay into a topic. It is nil if the node has none.
	Relay func() record.Stats
	// Troubles returns the campaigns whose gate decides nothing as far as this node knows, with the cause: see recovery.Machine. It is nil if the
	// node has no Machine.
	Troubles func() map[firstcome.CampaignID]error
}

// A recordingPage shows unrecorded coupons, and what keeps coupons out of the ledger.
type recordingPage struct {
	Campaigns []ledger.Status      // the campaigns to choose from
	Campaign  firstcome.CampaignID // the chosen one, or empty for all
	Typed     string               // what was typed into the field
	NoSuch    string               // why the typed text names no campaign
	Remote    bool                 // there is a gate beside the ledger
	Lags      []record.Lag
	Backlog   *int64         // nil if unknown
	Oldest    *time.Duration // nil if unknown
	Recorder  *record.Stats  // nil if this node records nothing
	Relay     *record.Stats  // nil if this node relays nothing
	Relayed   bool           // some node relays
	// Recorders are the nodes that record, with the last report of each.
	Recorders []nodeRow
	Unheard   bool                 // the other nodes cannot be read
	Causes    []ledger.LetterCause // of the open letters
	Letters   []ledger.DeadLetter
	Ask       *bulkResolve // a preview of resolving all letters of a cause
	Wrong     string
	More      int64 // where the next letters begin, or 0 if these are the last
	Resolved  bool
	Lost      []lostNumbers
	Gates     []stopCause  // campaigns whose gate decides nothing
	Rebuild   *bulkRebuild // a preview of rebuilding several gates
	Unread    bool         // the ledger does not answer
}

// alarmed is the backlog above which the page shows an alarm.
const alarmed = 10_000

// Behind reports whether the backlog is known to be long.
func (p recordingPage) Behind() bool { return p.Backlog != nil && *p.Backlog > alarmed }

// A lostNumbers has the numbers of a campaign that its gate lost, and the result of the last rebuild.
type lostNumbers struct {
	Campaign firstcome.CampaignID
	Ranges   []firstcome.Range
	Last     recovery.Rebuilt
}

const lettersPerPage = 50

// ledgerWait is how long a page waits for the ledger if it can do without it.
const ledgerWait = readWait / 2

// A bulkResolve is a preview of resolving all open dead letters of a cause.
type bulkResolve struct {
	ledger.LetterCause
	Void   bool // otherwise replay
	Reason string
	First  []ledger.DeadLetter
	// Typed is the confirmation that was typed before, if some letters were resolved and others remain.
	Typed string
	After int64 // letters up to this id were tried
}

// shownLetters is how many letters of a cause a preview shows.
const shownLetters = 3

// recordingHandlers show unrecorded coupons, and resolve dead letters.
type recordingHandlers struct{ *core }

func (c *recordingHandlers) show(v *view) error {
	return c.render(v, http.StatusOK, recordingPage{Resolved: v.form.Get("resolved") != ""})
}

func (c *recordingHandlers) render(v *view, status int, page recordingPage) error {
	page.Remote = c.Journal != nil
	page.Typed = strings.TrimSpace(v.form.Get("campaign"))
	var err error
	if page.Campaign, page.NoSuch, err = c.named(v, page.Typed); page.NoSuch != "" {
		status = http.StatusUnprocessableEntity
		page.NoSuch += " " + v.say("아래에는 모든 캠페인이 표시됩니다.", "Below are all campaigns.")
	}
	if err == nil {
		err = c.read(v, &page)
	}
	if page.Unread = err != nil; page.Unread {
		v.Log.Warn("a page of the console cannot read the ledger", "page", v.r.URL.Path, "err", err)
	}
	if c.Journal != nil {
		c.backlog(v, &page)
		c.recorders(v.r.Context(), &page)
		page.Gates = c.stopped(v, page.Campaign)
	}
	page.Campaigns = c.choices(v)
	return v.render(status, "recording", v.say("기록 현황", "Recording"), page)
}

// named finds a campaign by its id, or by a part of its id or name. wrong says why the text names no campaign. If the ledger cannot be read, err is
// set, and id is the typed id if that is a valid one.
func (c *core) named(v *view, text string) (id firstcome.CampaignID, wrong string, err error) {
	if text == "" {
		return "", "", nil
	}
	ctx, done := context.WithTimeout(v.r.Context(), ledgerWait)
	defer done()
	id, err = firstcome.ParseCampaignID(text)
	if err == nil {
		_, err = c.Ledger.Campaign(ctx, id)
	} else {
		err = firstcome.ErrNoCampaign
	}
	if !errors.Is(err, firstcome.ErrNoCampaign) {
		return id, "", err
	}
	found, err := c.Ledger.List(ctx, ledger.Listing{Text: text, At: c.Clock(), Limit: 2})
	if err == nil && len(found) == 1 {
		return found[0].ID, "", nil
	}
	return "", v.say("‘%s’에 해당하는 캠페인이 없습니다. 목록에서 선택하거나 ID를 입력하세요.", "“%s” is no campaign's id. Choose one from the list, or write its id.", text), err
}

// read reads from the ledger what the page shows.
func (c *recordingHandlers) read(v *view, page *recordingPage) (err error) {
	ctx, done := context.WithTimeout(v.r.Context(), ledgerWait)
	defer done()
	after, _ := strconv.ParseInt(v.form.Get("after"), 10, 64) // the number is from one of our own links
	page.Letters, err = c.Ledger.DeadLetters(ctx, ledger.Letters{Campaign: page.Campaign, After: after, Limit: lettersPerPage + 1, Resolved: page.Resolved})
	if err != nil {
		return err
	}
	if len(page.Letters) > lettersPerPage {
		page.Letters = page.Letters[:lettersPerPage]
		page.More = page.Letters[lettersPerPage-1].ID
	}
	if page.Causes, err = c.Ledger.LetterCauses(ctx, page.Campaign); err != nil {
		return err
	}
	page.Lost, err = c.lost(ctx, page.Campaign)
	return err
}

// recorders reads the last report of each recorder about its breaker.
func (c *recordingHandlers) recorders(ctx context.Context, page *recordingPage) {
	ctx, done := context.WithTimeout(ctx, ledgerWait)
	defer done()
	nodes, err := c.Watcher.Nodes.Nodes(ctx)
	page.Unheard = err != nil
	for _, n := range nodes {
		if n.Breaker != "" && n.StoppedAt.IsZero() {
			page.Recorders = append(page.Recorders, nodeRow{n, n.Silent()})
			page.Relayed = page.Relayed || n.Relay != ""
		}
	}
}

// backlog asks the gate for the unrecorded coupons. Without an answer their number is unknown.
func (c *recordingHandlers) backlog(v *view, page *recordingPage) {
	if c.Journal.Recorder != nil {
		stats := c.Journal.Recorder()
		page.Recorder = &stats
	}
	if c.Journal.Relay != nil {
		stats := c.Journal.Relay()
		page.Relay = &stats
	}
	lags, err := c.Journal.Lag(v.r.Context())
	aged := !errors.Is(err, record.ErrUnaged)
	if err != nil && aged {
		return
	}
	if page.Campaign != "" {
		lags = slices.DeleteFunc(lags, func(l record.Lag) bool { return l.Campaign != page.Campaign })
	}
	page.Lags = lags
	all, oldest := int64(0), time.Duration(0)
	for _, l := range lags {
		all, oldest = all+l.Numbers, max(oldest, l.Oldest)
	}
	if page.Backlog = &all; aged {
		page.Oldest = &oldest
	}
}

// lost returns the lost numbers of one campaign, or of all campaigns that a gate decides.
func (c *recordingHandlers) lost(ctx context.Context, of firstcome.CampaignID) (all []lostNumbers, err error) {
	if c.Journal == nil {
		return nil, nil
	}
	campaigns, err := c.Ledger.Campaigns(ctx, "", 1000)
	for n := range campaigns {
		if err != nil || !campaigns[n].Remote() || of != "" && of != campaigns[n].ID {
			continue
		}
		var ranges []firstcome.Range
		if ranges, err = c.Ledger.Lost(ctx, campaigns[n].ID); len(ranges) > 0 {
			var last recovery.Rebuilt
			last, err = c.LastRebuild(ctx, campaigns[n].ID)
			all = append(all, lostNumbers{campaigns[n].ID, ranges, last})
		}
	}
	return all, err
}

// letter returns the dead letter in the path.
func (c *recordingHandlers) letter(v *view) (int64, error) {
	letter, err := strconv.ParseInt(v.r.PathValue("letter"), 10, 64)
	if err != nil {
		return 0, firstcome.ErrNoDeadLetter
	}
	return letter, nil
}

func (c *recordingHandlers) replay(v *view) error {
	letter, err := c.letter(v)
	if err != nil {
		return err
	}
	if _, err := c.Operator.Replay(v.r.Context(), v.who.Actor, letter); err != nil {
		return err
	}
	return v.redirectDone(Root+"/recording", nil, "replayed")
}

func (c *recordingHandlers) void(v *view) error {
	letter, err := c.letter(v)
	if err != nil {
		return err
	}
	reason, err := v.reason()
	if err != nil {
		return err
	}
	if _, err := c.Operator.VoidLetter(v.r.Context(), v.who.Actor, letter, reason); err != nil {
		return err
	}
	return v.redirectDone(Root+"/recording", nil, "voided")
}

// resolve previews resolving all open letters of a cause, and does it once the campaign's name or id was typed.
func (c *recordingHandlers) resolve(v *view) error {
	of, ask, err := c.chosenLetters(v)
	if err != nil {
		return err
	}
	page := recordingPage{}
	if ask.Void {
		if _, err = v.reason(); err != nil {
			page.Wrong = v.why(err)
			return c.render(v, http.StatusUnprocessableEntity, page)
		}
	}
	s, err := c.Ledger.Campaign(v.r.Context(), of.Campaign)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		s.ID, s.Name, err = of.Campaign, string(of.Campaign), nil // without a name, the id is the confirmation
	}
	if err != nil {
		return err
	}
	if !v.typed(&s) {
		page.Wrong = v.notTyped()
		return c.askToResolve(v, page, of, ask)
	}
	var done operate.Resolved
	if ask.Void {
		done, err = c.Operator.VoidLetters(v.r.Context(), v.who.Actor, of, ask.Reason)
	} else {
		done, err = c.Operator.ReplayLetters(v.r.Context(), v.who.Actor, of)
	}
	if err != nil {
		return err
	}
	if done.Stopped == nil && done.Remaining == 0 && len(done.Refused) == 0 {
		return v.redirectDone(Root+"/recording", nil, map[bool]string{true: "voided", false: "replayed"}[ask.Void])
	}
	if done.Stopped != nil {
		v.Log.Warn("resolving dead letters stopped", "campaign", of.Campaign, "cause", of.Cause, "done", done.Done, "err", done.Stopped)
		page.Wrong = v.refusalOf(done.Stopped).Head + ". "
	}
	page.Wrong += v.say("처리 %s건, 원장이 다시 거부 %s건, 남은 %s건.", "%s resolved, %s refused as before, %s not tried yet.",
		v.lang.number(done.Done), v.lang.number(len(done.Refused)), v.lang.number(done.Remaining))
	if done.Remaining == 0 {
		return c.render(v, http.StatusOK, page)
	}
	of.After, ask.After, ask.Typed = done.After, done.After, string(of.Campaign)
	return c.askToResolve(v, page, of, ask)
}

// askToResolve shows the first letters that would be resolved, and how many there are.
func (c *recordingHandlers) askToResolve(v *view, page recordingPage, of ledger.Letters, ask bulkResolve) (err error) {
	of.Limit = shownLetters
	if ask.First, ask.Open, err = c.Ledger.LettersToResolve(v.r.Context(), of); err != nil {
		return err
	}
	page.Ask = &ask
	return c.render(v, http.StatusOK, page)
}

// chosenLetters reads which open letters a form is about, and whether to replay or void them.
func (c *recordingHandlers) chosenLetters(v *view) (of ledger.Letters, ask bulkResolve, err error) {
	of.Campaign, err = firstcome.ParseCampaignID(v.form.Get("of"))
	of.Cause = v.form.Get("cause")
	through, err2 := strconv.ParseInt(v.form.Get("through"), 10, 64)
	of.After, _ = strconv.ParseInt(v.form.Get("after"), 10, 64) // absent in the first form
	of.Through = through
	do := v.form.Get("do")
	if errors.Join(err, err2) != nil || through < 1 || !slices.Contains(ledger.CauseCodes(), of.Cause) || do != "replay" && do != "void" {
		return of, ask, errLost
	}
	ask = bulkResolve{LetterCause: ledger.LetterCause{Campaign: of.Campaign, Code: of.Cause, Through: through}, Void: do == "void", Reason: v.form.Get("reason"), After: of.After}
	return of, ask, nil
}
