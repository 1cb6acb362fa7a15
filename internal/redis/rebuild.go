package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Standing returns nil if the gate decides claims of a campaign. gate.ErrUnverified and gate.ErrLost say that it needs a rebuild, recovery.ErrAhead
// that it knows more than the revision says, a gate.StaleEpochError that its epoch has ended.
func (g *Gate) Standing(ctx context.Context, r gate.Revision) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := g.keysIn(r)
	word, parts, err := g.run(ctx, g.standing, k, append(g.remembers.told(k).args(), whole10(r.Epoch), whole10(r.Version), whole10(r.Drained))...)
	if err == nil {
		err = standings[word]
	}
	if word == "behind" {
		err = older(r.Campaign, parts, r.Epoch)
	}
	return wrap(err, "look whether the gate of %s stands", r.Campaign)
}

// Decides returns nil if the gate decides claims of a campaign, in this very epoch: see gate.Epochs.
func (g *Gate) Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return err
	}
	return g.Standing(ctx, gate.Revision{Campaign: id, Marker: k.marker, Epoch: epoch, Version: unlimited, Drained: unlimited})
}

func (g *Gate) stands(ctx context.Context, k *keys) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	word, _, err := g.run(ctx, g.standing, k, g.remembers.told(k).args()...)
	if err != nil {
		return err
	}
	return standings[word]
}

// older returns the error of a gate of which a script says that its epoch has ended, given the ledger's.
func older(id firstcome.CampaignID, parts []rueidis.RedisMessage, epoch int64) error {
	e := &gate.StaleEpochError{Campaign: id, Ledger: epoch}
	if len(parts) > 0 {
		e.Gate, _ = whole(parts[0])
	}
	return e
}

// standings are what the words of lua/standing.lua mean.
var standings = map[string]error{"stands": nil, "lost": errPart, "ahead": recovery.ErrAhead}

var errLoading = fmt.Errorf("%w: the server still reads its file", firstcome.ErrGateUnavailable)

// Runs returns the runs of the servers of the gate that answer, in the order of their names. It is an error if none does. A server that
// still reads its file does not answer.
func (g *Gate) Runs(ctx context.Context) ([]recovery.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var runs []recovery.Run
	var failed error
	for _, node := range g.client.Nodes() {
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			failed = classify(err)
			continue
		}
		info := parseInfo(text)
		if info["loading"] == "1" { // until it has read its file it says that it keeps none
			failed = errLoading
			continue
		}
		if info["role"] != "master" && info["redis_mode"] == "cluster" {
			continue
		}
		durable := keepsAll(info)
		if durable {
			if durable, err = syncsFirst(ctx, node); err != nil { // a server that ends now is not one that does not sync
				failed = err
				continue
			}
		}
		runs = append(runs, recovery.Run{ID: runOf(info), Durable: durable})
	}
	if len(runs) == 0 {
		return nil, failed
	}
	slices.SortFunc(runs, func(a, b recovery.Run) int { return strings.Compare(a.ID, b.ID) })
	return runs, nil
}

// runOf returns the run of a server by its INFO, as lua/prelude.lua names it.
func runOf(info map[string]string) string {
	if info["role"] != "master" {
		return "replica"
	}
	return info["master_replid"]
}

// syncsFirst reports whether a server syncs its file before it answers, also while it rewrites that file. It is false if the gate's user may not
// read the settings.
func syncsFirst(ctx context.Context, node rueidis.Client) (bool, error) {
	set, err := settings(ctx, node)
	var e *Error
	if errors.As(classify(err), &e) && (e.Code == "NOPERM" || e.Code == plain) {
		return false, nil
	}
	return set["appendfsync"] == "always" && set[notWhileRewriting] == "no", classify(err)
}

// notWhileRewriting is the setting by which a server does not sync while a child process writes to the disk.
const notWhileRewriting = "no-appendfsync-on-rewrite"

// settings returns those of a server that say when it syncs its append-only file.
func settings(ctx context.Context, node rueidis.Client) (map[string]string, error) {
	return node.Do(ctx, node.B().ConfigGet().Parameter("*appendfsync*").Build()).AsStrMap()
}

// keepsAll tells whether a server's INFO is that of one that a restart brings back as it was, but for how often it syncs: it appends to a
// file, it was never a replica, and it has none. A replica that was here within the hour has left a backlog.
func keepsAll(info map[string]string) bool {
	return info["role"] == "master" && info["aof_enabled"] == "1" && info["connected_slaves"] == "0" && info["repl_backlog_active"] == "0" &&
		strings.Trim(info["master_replid2"], "0") == ""
}

// Named tells whether Redis still has the name that this gate has. Redis that was emptied has none.
func (g *Gate) Named(ctx context.Context) (bool, error) {
	name, err := g.text(ctx, instanceKey)
	return name != "" && name == g.instance, err
}

// Rename gives Redis the name of this gate again, if it has none, because somebody emptied it. Another name is an error. A gate without a
// name has none to give.
func (g *Gate) Rename(ctx context.Context) error {
	if g.instance == "" {
		return nil
	}
	name, err := g.once(ctx, instanceKey, g.instance)
	if err == nil && name != g.instance {
		err = fmt.Errorf("%w: Redis has the name %s, and this node's gate is %s: restart the node", firstcome.ErrGateMismatch, name, g.instance)
	}
	if err == nil {
		err = g.openLayout(ctx)
	}
	return wrap(err, "give Redis its name again")
}

// Freeze has the gate decide and settle nothing more of a campaign until Switch, or until a later attempt freezes it, and returns
// what it told last. recovery.ErrOutdone: a later attempt did. It removes what earlier attempts left.
func (g *Gate) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	f, err := g.freezeCampaign(ctx, r)
	if err == nil {
		err = g.removeLoaded(ctx, r)
	}
	return f, wrap(err, "freeze %s", r.Campaign)
}

func (g *Gate) freezeCampaign(ctx context.Context, r recovery.Rebuild) (f recovery.Frozen, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	word, parts, err := g.run(ctx, g.freeze, g.keyring.renew(r.Campaign, r.Marker), whole10(r.Attempt))
	switch {
	case err != nil:
		return f, err
	case word == "outdone":
		return f, recovery.ErrOutdone
	case word != "frozen" || len(parts) != 9:
		return f, fmt.Errorf("the freeze script answered %q and %d parts", word, len(parts))
	}
	if f.RunID, err = parts[0].ToString(); err != nil {
		return f, err
	}
	for n, into := range []*int64{&f.Epoch, &f.Drained} {
		if *into, err = whole(parts[7+n]); err != nil {
			return f, err
		}
	}
	var instants [4]int64
	for n, into := range []*int64{&f.Version, &instants[0], &instants[1], &instants[2], &instants[3]} {
		if *into, err = whole(parts[1+n]); err != nil {
			return f, err
		}
	}
	f.DecidedAt, f.OpenedAt, f.SoldOutAt, f.ClosedAt = instant(instants[0]), instant(instants[1]), instant(instants[2]), instant(instants[3])
	field, err := parts[6].ToString()
	if err != nil || field == "" {
		return f, err
	}
	switch l, err := readLine(field); {
	case err != nil: // nobody can say who is in line
	case possible(l.Line):
		f.Line = l.Line
	case l.Generation >= 1: // only its people are known
		f.Line.Generation = l.Generation
	}
	return f, nil
}

func whole10(n int64) string { return strconv.FormatInt(n, 10) }

// loadedKeys are those that an attempt loads, to be put in the place of the frozen ones.
type loadedKeys struct{ holders, line, tickets string }

// loaded returns the keys that an attempt loads.
func (k *keys) loaded(attempt int64) loadedKeys {
	key := func(name string) string { return "firstcome:{" + k.tag + "}:attempt:" + whole10(attempt) + ":" + name }
	return loadedKeys{key("holders"), key("line"), key("tickets")}
}

// all returns the keys in the order in which the scripts take them.
func (k loadedKeys) all() []string { return []string{k.holders, k.line, k.tickets} }

// removeLoaded removes what this attempt loaded, and those that froze the campaign before it.
func (g *Gate) removeLoaded(ctx context.Context, r recovery.Rebuild) error {
	k := keysOf(r.Campaign, r.Marker)
	froze, err := g.client.Do(ctx, g.client.B().Hget().Key(k.campaign).Field("attempts").Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return classify(err)
	}
	left := k.loaded(r.Attempt).all()
	for text := range strings.FieldsSeq(froze) {
		attempt, _ := strconv.ParseInt(text, 10, 64)
		left = append(left, k.loaded(attempt).all()...)
	}
	return classify(g.client.Do(ctx, g.client.B().Unlink().Key(left...).Build()).Error())
}

// frozenJournal returns what reads the journal of a campaign that an attempt has frozen. recovery.ErrOutdone: it is not frozen by that, at the
// server that answers.
func (g *Gate) frozenJournal(ctx context.Context, k *keys, attempt int64) pager {
	return func(from string, count int64) ([]rueidis.XRangeEntry, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		word, parts, err := g.run(ctx, g.empty, k, whole10(attempt), from, whole10(count))
		switch {
		case err != nil:
			return nil, err
		case word == "outdone":
			return nil, recovery.ErrOutdone
		case word != "entries" || len(parts) != 1:
			return nil, fmt.Errorf("the empty script answered %q and %d parts", word, len(parts))
		}
		return parts[0].AsXRange()
	}
}

// Empty gives all that is in the journal of a campaign to a sink, which this attempt has frozen. recovery.ErrOutdone says that it has not: the
// server is older, or another attempt has begun. Entries of a newer firstcome are an error.
func (g *Gate) Empty(ctx context.Context, r recovery.Rebuild, to flow.Sink) error {
	k := keysOf(r.Campaign, r.Marker)
	var items []item
	give := func() error {
		for _, part := range shares(g.Name(), r.Campaign, r.Marker, g.options.Secret, items, defaultCoupons) {
			part.Attempt = r.Attempt
			if _, err := to(ctx, part.Batch); err != nil {
				return err
			}
		}
		items = items[:0]
		return nil
	}
	err := eachEntry(g.frozenJournal(ctx, k, r.Attempt), inspectEntries, func(e rueidis.XRangeEntry) error {
		i := item{e.ID, e.FieldValues}
		if i.newer() {
			return errNewer
		}
		if items = append(items, i); len(items) < inspectEntries {
			return nil
		}
		return give()
	})
	if err == nil {
		err = give()
	}
	return wrap(err, "empty the journal of %s", r.Campaign)
}

// loadPage is how many fields one command loads: some 40 kB.
const loadPage = 1000

// A loading writes fields of a hash that an attempt loads.
type loading struct {
	gate   *Gate
	key    string
	fields []string
}

func (l *loading) put(ctx context.Context, field, value string) error {
	if l.fields = append(l.fields, field, value); len(l.fields) < 2*loadPage {
		return nil
	}
	return l.end(ctx)
}

// end writes what is left.
func (l *loading) end(ctx context.Context) error {
	if len(l.fields) == 0 {
		return nil
	}
	page := l.gate.client.B().Hset().Key(l.key).FieldValue()
	for n := 0; n < len(l.fields); n += 2 {
		page = page.FieldValue(l.fields[n], l.fields[n+1])
	}
	l.fields = l.fields[:0]
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return classify(l.gate.client.Do(ctx, page.Build()).Error())
}

// Loading returns what loads an attempt's keys, which begin anew: put takes a coupon, and end says that all came. A coupon that is void
// makes no holder; if it was issued to a ticket, it says that this is over.
func (g *Gate) Loading(ctx context.Context, r recovery.Rebuild) (put func(firstcome.Coupon) error, end func() error, err error) {
	k := keysOf(r.Campaign, r.Marker)
	to := k.loaded(r.Attempt)
	holders, tickets := &loading{gate: g, key: to.holders}, &loading{gate: g, key: to.tickets}
	if err = g.removeLoaded(ctx, r); err == nil {
		err = g.keepTickets(ctx, k, tickets)
	}
	if err != nil {
		return nil, nil, wrap(err, "load %s", r.Campaign)
	}
	put = func(c firstcome.Coupon) error {
		switch {
		case c.VoidedAt.IsZero():
			return wrap(holders.put(ctx, string(c.User), string(holderEntry(c))), "load %s", r.Campaign)
		case c.Ticket == 0:
			return nil
		}
		return wrap(tickets.put(ctx, string(c.User), overEntry(c)), "load %s", r.Campaign)
	}
	end = func() error {
		err := holders.end(ctx)
		if err == nil {
			err = tickets.end(ctx)
		}
		return wrap(err, "load %s", r.Campaign)
	}
	return put, end, nil
}

// holderEntry returns what the holders hash keeps of a coupon, with its ticket and flag.
func holderEntry(c firstcome.Coupon) []byte {
	entry := appendEntry(nil, c)
	if c.Ticket > 0 {
		entry = append(entry, ticketEntry(c.Generation, c.Ticket)...)
	}
	if c.Buried {
		entry = append(entry, 1)
	}
	return entry
}

// Switch puts what was loaded into the place of the frozen campaign. recovery.ErrOutdone and recovery.ErrMoved say that nothing was switched.
func (g *Gate) Switch(ctx context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	k := g.keyring.renew(r.Campaign, r.Marker)
	args := []string{
		whole10(r.Attempt), f.RunID, whole10(loaded.Least), whole10(loaded.Most), whole10(loaded.People), group,
		whole10(fill.DecidedAt.UnixMicro()),
		"epoch", whole10(fill.Epoch), "version", whole10(fill.Version), "terms_version", whole10(fill.TermsVersion),
		"quantity", quantityArg(fill.Quantity), "opens_at", micros(fill.OpensAt), "closes_at", micros(fill.ClosesAt),
		"paused", flag(fill.Paused), "closed", flag(fill.Closed), "issued", whole10(fill.Issued), "last_number", whole10(fill.LastNumber),
		"drained_through", whole10(fill.LastNumber), "ceiling", whole10(min(fill.Ceiling, unlimited)),
		"opened_at", micros(fill.OpenedAt), "sold_out_at", micros(fill.SoldOutAt), "closed_at", micros(fill.ClosedAt),
	}
	args = append(args, lineFields(fill)...)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := g.note(ctx, k); err != nil && !errors.Is(err, gate.ErrForgotten) { // Redis may have been emptied
		return wrap(err, "switch %s", r.Campaign)
	}
	answer, err := g.switchScript.Exec(ctx, g.client, append(slices.Clone(k.all()), k.loaded(r.Attempt).all()...), args).ToArray()
	if err != nil {
		return wrap(classify(err), "switch %s", r.Campaign)
	}
	word, _ := answer[0].ToString()
	switch word {
	case "switched":
		return nil
	case "outdone":
		err = recovery.ErrOutdone
	case "moved":
		err = recovery.ErrMoved
	default:
		err = fmt.Errorf("the switch script answered %q", word)
	}
	return wrap(err, "switch %s", r.Campaign)
}

// errUnverified is the error of a campaign of which the scripts do nothing.
var errUnverified = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified)

// errFrozen means that a rebuild froze the campaign.
var errFrozen = fmt.Errorf("%w: %w", errUnverified, flow.ErrRebuilding)

// ceilingArg returns a ceiling as the scripts take it.
func ceilingArg(ceiling int64) string {
	if ceiling == 0 {
		return ""
	}
	return whole10(min(ceiling, unlimited))
}

// Stopped returns what an unverified campaign is at the gate.
func (g *Gate) Stopped(ctx context.Context, r gate.Revision) (s recovery.Stopped, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := g.keysIn(r)
	told := g.remembers.told(k) // before the gate is asked: meanwhile it may give more
	_, parts, err := g.run(ctx, g.stopped, k)
	if err == nil && len(parts) != 19 {
		err = fmt.Errorf("the stopped script answered %d parts", len(parts)+1)
	}
	if err != nil {
		return s, wrap(err, "look at %s", r.Campaign)
	}
	s.Was, _ = parts[0].ToString()
	s.Is, _ = parts[1].ToString()
	var frozen, opensAt, closesAt, paused, closed, closedAt int64
	for n, into := range []*int64{
		&frozen, &s.Epoch, &s.Version, &s.LastNumber, &s.DrainedThrough, &s.InForce, &s.Holders, &s.Quantity, &opensAt, &closesAt, &paused, &closed,
		&s.Attempt, &s.Ceiling, &closedAt,
	} {
		if *into, err = whole(parts[2+n]); err != nil {
			return s, wrap(err, "look at %s", r.Campaign)
		}
	}
	if told.epoch == s.Epoch {
		s.Told = told.number
	}
	s.Frozen, s.Paused, s.Closed = frozen == 1, paused == 1, closed == 1
	s.Quantity, s.OpensAt, s.ClosesAt, s.ClosedAt = quantityOf(s.Quantity), instant(opensAt), instant(closesAt), instant(closedAt)
	if field, _ := parts[17].ToString(); field != "" {
		if l, err := readLine(field); err == nil {
			s.Line, s.Pace, s.Waitlist, s.Log = true, l.pace, l.waitlist, l.log
		}
	}
	decidedAt, err := whole(parts[18])
	s.DecidedAt = instant(decidedAt)
	return s, wrap(err, "look at %s", r.Campaign)
}

// Held calls each with the coupon in force of every holder of a frozen campaign, in no order, perhaps twice, until it returns an error.
func (g *Gate) Held(ctx context.Context, r recovery.Rebuild, each func(firstcome.Coupon) error) error {
	err := g.eachHolder(ctx, keysOf(r.Campaign, r.Marker), func(c firstcome.Coupon) error {
		c.Code = g.options.Secret.Code(c.Campaign, c.Number)
		c.Buried = false
		return each(c)
	})
	return wrap(err, "read the holders of %s", r.Campaign)
}

// HoldsEach tells for each of these coupons whether the gate has its user as a holder, with the same coupon.
func (g *Gate) HoldsEach(ctx context.Context, r gate.Revision, coupons []firstcome.Coupon) (held []bool, err error) {
	k := g.keysIn(r)
	for part := range slices.Chunk(coupons, askChunk) {
		users := make([]string, len(part))
		for n, c := range part {
			users[n] = string(c.User)
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		entries, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.holders).Field(users...).Build()).AsStrSlice()
		cancel()
		if err != nil {
			return held, wrap(classify(err), "read the holders of %s", r.Campaign)
		}
		for n, c := range part {
			held = append(held, strings.HasPrefix(entries[n], string(appendEntry(nil, c))))
		}
	}
	return held, nil
}

// Verified has the gate decide claims of a campaign again that was verified as stopped says. recovery.ErrMoved: it is another one by now.
func (g *Gate) Verified(ctx context.Context, r gate.Revision, s recovery.Stopped) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	word, _, err := g.run(ctx, g.verify, g.keysIn(r), s.Was, s.Is, whole10(s.Epoch), whole10(s.Version), whole10(s.LastNumber))
	if err == nil && word != "verified" {
		err = recovery.ErrMoved
	}
	return wrap(err, "note that %s is verified", r.Campaign)
}
