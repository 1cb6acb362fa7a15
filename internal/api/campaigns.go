package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/wire"
)

// campaigns serves campaigns and the operators' commands on them.
type campaigns struct{ *core }

// create answers POST /v1/campaigns.
func (s *campaigns) create(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	o, wrong, err := s.readObject(w, r, append([]string{"id"}, termsFields...)...)
	if err != nil {
		return err
	}
	id, err := o.newID(wrong)
	if err != nil {
		return err
	}
	for _, field := range []string{"name", "quantity"} {
		if _, ok := o[field]; !ok {
			wrong.require(field)
		}
	}
	e, err := parseTerms(o, wrong)
	if err != nil {
		return err
	}
	terms := firstcome.Terms{Answer: firstcome.Recorded}
	e.apply(&terms)
	made, err := s.Operator.Create(r.Context(), c.Name, id, terms)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/campaigns/"+string(id))
	return s.write(w, r, http.StatusCreated, made)
}

// newID returns the campaign id in the body, or a generated id if it has none.
func (o object) newID(wrong *mistakes) (firstcome.CampaignID, error) {
	raw, ok := o["id"]
	if !ok {
		made, err := uuid.NewV7() // sorts by creation time
		if err != nil {
			return "", fmt.Errorf("generate an id: %w", err)
		}
		return firstcome.ParseCampaignID(made.String())
	}
	text := wrong.readString("id", raw)
	id, err := firstcome.ParseCampaignID(text)
	if err != nil && !wrong.names("id") {
		wrong.refuse("id", err.Error())
	}
	return id, nil
}

// list answers GET /v1/campaigns.
func (s *campaigns) list(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	q := parseQuery(r)
	after, most := firstcome.CampaignID(q.text("after")), q.limit()
	if q.err() != nil {
		return q.err()
	}
	found, err := s.Ledger.Campaigns(r.Context(), after, most+1)
	if err != nil {
		return err
	}
	found, next := pageOf(found, most, func(c ledger.Status) firstcome.CampaignID { return c.ID })
	items := make([]client.Campaign, len(found))
	for n, c := range s.listed(r.Context(), found) {
		if items[n], err = s.shown(r.Context(), c); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, client.List[client.Campaign]{Items: items, Next: next})
}

// read answers GET /v1/campaigns/{id}.
func (s *campaigns) read(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	if err := s.existing.meet(r.Context(), c, id); err != nil {
		return err
	}
	found, err := s.Ledger.Campaign(r.Context(), id)
	if err != nil {
		return err
	}
	return s.write(w, r, http.StatusOK, found)
}

// update answers PATCH /v1/campaigns/{id}.
func (s *campaigns) update(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	version, err := s.expected(r, id)
	if err != nil {
		return err
	}
	o, wrong, err := s.readObject(w, r, termsFields...)
	if err != nil {
		return err
	}
	e, err := parseTerms(o, wrong)
	if err != nil {
		return err
	}
	changed, err := s.Operator.SetTerms(r.Context(), c.Name, id, version, e.apply)
	if err != nil {
		return err
	}
	return s.write(w, r, http.StatusOK, changed)
}

// expected returns the version that If-Match allows a campaign to have, or 0 for any. If it allows several, that is the campaign's version if it is
// among them. Otherwise the campaign has changed, whichever of them is returned.
func (s *campaigns) expected(r *http.Request, id firstcome.CampaignID) (int64, error) {
	versions, err := ifMatch(r)
	if err != nil || len(versions) == 0 {
		return 0, err
	}
	if len(versions) > 1 {
		now, err := s.Ledger.Campaign(r.Context(), id)
		if err != nil {
			return 0, err
		}
		if slices.Contains(versions, now.Version) {
			return now.Version, nil
		}
	}
	return versions[0], nil
}

// ifMatch returns the versions in If-Match, or none if any version matches.
func ifMatch(r *http.Request) (versions []int64, err error) {
	tags := strings.Join(r.Header["If-Match"], ",")
	if tags == "" || tags == "*" {
		return nil, nil
	}
	for tag := range strings.SplitSeq(tags, ",") {
		version, ok := versionOf(strings.TrimSpace(tag))
		if !ok {
			return nil, malformed(`If-Match has a campaign's ETag, like "3", or several with commas between`)
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// versionOf returns the version in an ETag. A proxy that compresses answers may have made the tag weak (W/"3"), or added an ending ("3-gzip").
func versionOf(tag string) (int64, bool) {
	text, quoted := strings.CutPrefix(strings.TrimPrefix(tag, "W/"), `"`)
	text, ends := strings.CutSuffix(text, `"`)
	digits, _, _ := strings.Cut(text, "-")
	version, err := strconv.ParseInt(digits, 10, 64)
	return version, quoted && ends && err == nil && version > 0 && digits == strconv.FormatInt(version, 10)
}

// switchTo returns the handler of POST /v1/campaigns/{id}/pause, resume or close.
func (s *campaigns) switchTo(to firstcome.ChangeKind) handler {
	return of(func(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
		if err := s.readNothing(w, r); err != nil {
			return err
		}
		changed, err := s.Operator.ChangeState(r.Context(), c.Name, id, 0, to)
		if err != nil {
			return err
		}
		return s.write(w, r, http.StatusOK, changed)
	})
}

// rebuild answers POST /v1/campaigns/{id}/rebuild.
func (s *campaigns) rebuild(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	if err := s.readNothing(w, r); err != nil {
		return err
	}
	q := parseQuery(r)
	order := recovery.Order{IfLost: q.flag("if_lost"), WithoutLog: q.flag("without_line_log")}
	if err := q.err(); err != nil {
		return err
	}
	done, err := s.Operator.Rebuild(r.Context(), c.Name, id, order)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, client.Rebuilt{Epoch: done.Epoch, Lost: done.Lost, Carried: done.Carried, LostPlaces: done.LostPlaces})
}

// estimate answers GET /v1/campaigns/{id}/reconcile.
func (s *campaigns) estimate(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	if _, err := s.Ledger.Campaign(r.Context(), id); err != nil {
		return err
	}
	e, err := s.Operator.Estimate(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, client.Estimate{
		CampaignID: string(id), Recovered: e.Recovered, Voided: e.Voided, Unexplained: e.Unexplained,
		LedgerVersion: e.Behind, GateVersion: e.Version, LedgerEpoch: e.Ledger, GateEpoch: e.Gate,
	})
}

// reconcile answers POST /v1/campaigns/{id}/reconcile.
func (s *campaigns) reconcile(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	if err := s.readNothing(w, r); err != nil {
		return err
	}
	if _, err := s.Ledger.Campaign(r.Context(), id); err != nil {
		return err
	}
	done, err := s.Operator.Reconcile(r.Context(), c.Name, id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, client.Reconciled{
		Rebuilt:   client.Rebuilt{Epoch: done.Rebuilt.Epoch, Lost: done.Lost, Carried: done.Carried, LostPlaces: done.LostPlaces},
		Recovered: done.Recovered, DeadLetters: done.Letters, Voided: done.Voided, Unexplained: done.Unexplained,
		LedgerVersion: done.Behind, GateVersion: done.Adopted.Version,
		FactsFrom: done.FactsFrom, Followers: append([]string{}, done.Followers...),
	})
}

// write answers with a campaign and the gate's counters.
func (s *campaigns) write(w http.ResponseWriter, r *http.Request, status int, kept ledger.Status) error {
	c, err := s.counted(r.Context(), kept)
	if err != nil {
		return err
	}
	shown, err := s.shown(r.Context(), c)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+strconv.FormatInt(c.Version, 10)+`"`)
	return writeJSON(w, status, shown)
}

// shown converts a campaign to its JSON form, with how much of each prize was given.
func (s *campaigns) shown(ctx context.Context, c told) (client.Campaign, error) {
	shown := wireCampaign(c)
	var err error
	if shown.Codes, err = s.codesShown(ctx, c.ID, &c.Terms); err != nil {
		return shown, err
	}
	given, err := s.Ledger.PrizesGiven(ctx, c.ID, &c.Terms, c.LastNumber)
	for n, g := range given {
		from, to := c.Ranks(n)
		prize := client.Prize{PrizeSpec: shown.Terms.Prizes[n], From: from, Given: c.known(g.Given), RanOutAt: wire.Time(g.RanOutAt)}
		if to != firstcome.Unlimited {
			prize.To = &to
		}
		shown.Prizes = append(shown.Prizes, prize)
	}
	return shown, err
}

// wireCampaign converts a campaign to its JSON form.
func wireCampaign(s told) client.Campaign {
	t := wireTerms(&s.Terms)
	c := client.Campaign{
		ID: string(s.ID), Terms: *t, Version: s.Version, State: s.state(), GateState: s.gate, Waiting: s.waiting(),
		InForce: s.known(s.InForce), Issued: s.known(s.Issued), Recorded: s.Recorded,
		OpenedAt: wire.Time(s.OpenedAt), SoldOutAt: wire.Time(s.SoldOutAt), ClosedAt: wire.Time(s.ClosedAt),
		CreatedAt: client.Time{Time: s.CreatedAt}, ServerTime: client.Time{Time: s.Now},
	}
	if t.Quantity != nil {
		c.Remaining = s.known(*t.Quantity - s.InForce)
	}
	return c
}

// changes answers GET /v1/campaigns/{id}/changes.
func (s *campaigns) changes(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	q := parseQuery(r)
	after, most := q.number("after"), q.limit()
	if q.err() != nil {
		return q.err()
	}
	if _, err := s.Ledger.Campaign(r.Context(), id); err != nil {
		return err
	}
	changes := []client.Change{}
	err := s.Ledger.Changes(r.Context(), id, after, most+1, func(c firstcome.Change, refused bool) error {
		changes = append(changes, wireChange(&c, refused))
		return nil
	})
	if err != nil {
		return err
	}
	changes, next := pageOf(changes, most, func(c client.Change) int64 { return c.Version })
	return writeJSON(w, http.StatusOK, client.List[client.Change]{Items: changes, Next: next})
}

// wireChange converts a change to its JSON form.
func wireChange(c *firstcome.Change, refused bool) client.Change {
	change := client.Change{Version: c.Version, Kind: string(c.Kind), At: client.Time{Time: c.At}, Refused: refused}
	switch c.Kind {
	case firstcome.ChangeTerms:
		change.Terms = wireTerms(&c.Terms)
	case firstcome.ChangeReconcile:
		change.Terms, change.Paused, change.Closed = wireTerms(&c.Terms), c.Paused, c.Closed
	case firstcome.ChangeVoid:
		user := string(c.User)
		change.Number, change.UserID = &c.Number, &user
	}
	return change
}

// ledger answers GET /v1/campaigns/{id}/ledger.
func (s *campaigns) ledger(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	found, err := s.Ledger.Campaign(r.Context(), id)
	if err != nil {
		return err
	}
	lost, err := s.Ledger.Lost(r.Context(), found.ID)
	if err != nil {
		return err
	}
	counted, _ := s.counted(r.Context(), found) // counted.gate has the gate's state even after an error
	state := client.LedgerState{
		CampaignID: string(found.ID), Gate: found.Gate, GateState: counted.gate, Epoch: found.Epoch, Version: found.Version, Applied: found.Applied,
		InForce: found.InForce, Recorded: found.Recorded, LastNumber: found.LastNumber, Position: found.Position,
		DrainedThrough: found.DrainedThrough, Lost: []client.Range{}, RetiredAt: wire.Time(found.RetiredAt),
	}
	if !found.Remote() {
		state.DrainedThrough = found.LastNumber // where the ledger decides, every number is recorded at once
	}
	for _, numbers := range lost {
		state.Lost = append(state.Lost, client.Range(numbers))
	}
	return writeJSON(w, http.StatusOK, state)
}
