package operate_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// A desk is an Operator's ledger, issuer and gate in one. It notes its calls.
type desk struct {
	steps     []string
	pending   []firstcome.Change
	letter    ledger.DeadLetter
	letters   []ledger.DeadLetter // of a selection that has five more; if nil, only letter
	resolve   func(letter int64) error
	made      bool             // the gate had the campaign
	fails     map[string]error // by steps
	before    firstcome.Terms  // of the campaign
	meanwhile *firstcome.Terms // of the campaign when the change is made; nil: before
	after     firstcome.Terms  // as they were numbered
}

func (d *desk) step(name string) error {
	d.steps = append(d.steps, name)
	return d.fails[name]
}

// number makes a change.
func (d *desk) number(id firstcome.CampaignID) (int64, error) {
	err := d.step("number")
	if len(d.pending) > 0 {
		return 0, firstcome.ErrPending
	}
	if err == nil {
		d.pending = []firstcome.Change{{Campaign: id, Version: 7}}
	}
	return 7, err
}

func (d *desk) Change(_ firstcome.CampaignID, change func() error) error {
	return errors.Join(d.step("end leases"), change(), d.step("grant leases"))
}

func (d *desk) Create(_ context.Context, _ string, id firstcome.CampaignID, terms firstcome.Terms) error {
	d.after = terms
	return stage.Err(d.number(id))
}

func (d *desk) SetTerms(_ context.Context, _ string, id firstcome.CampaignID, _ int64, edit func(*firstcome.Terms)) (int64, error) {
	if d.after = d.before; d.before.Name != "" {
		if d.meanwhile != nil {
			d.after = *d.meanwhile
		}
		edit(&d.after)
	}
	return d.number(id)
}

func (d *desk) ChangeState(_ context.Context, _ string, id firstcome.CampaignID, _ int64, _ firstcome.ChangeKind) (int64, error) {
	return d.number(id)
}

func (d *desk) Void(_ context.Context, _ string, id firstcome.CampaignID, number int64, _ string) (firstcome.Coupon, error) {
	_, err := d.number(id)
	return firstcome.Coupon{Campaign: id, Number: number}, err
}

func (d *desk) VoidLetter(context.Context, string, int64, string) error {
	return stage.Err(d.number(d.letter.Campaign))
}

func (d *desk) Replay(_ context.Context, _ string, letter int64) error {
	if d.resolve != nil {
		return d.resolve(letter)
	}
	return d.step("replay")
}

func (d *desk) Issue(context.Context, gate.Order, firstcome.CampaignID, []firstcome.UserID) ([]firstcome.Decision, error) {
	return nil, d.step("claim")
}

func (d *desk) Campaign(_ context.Context, id firstcome.CampaignID) (s ledger.Status, err error) {
	s.ID, s.Terms = id, d.before
	return s, d.fails["read"]
}

func (d *desk) LettersToResolve(context.Context, ledger.Letters) ([]ledger.DeadLetter, int64, error) {
	if d.letters == nil {
		return []ledger.DeadLetter{d.letter}, 1, nil
	}
	return d.letters, int64(len(d.letters)) + 5, nil
}

func (d *desk) DeadLetter(context.Context, int64) (ledger.DeadLetter, error) { return d.letter, nil }

func (d *desk) State(context.Context, firstcome.CampaignID) (gate.State, error) {
	return gate.State{LastNumber: 3}, d.step("ask")
}

func (d *desk) Pending(context.Context, firstcome.CampaignID) ([]firstcome.Change, error) {
	return slices.Clone(d.pending), nil
}

func (d *desk) Apply(context.Context, firstcome.Change) (bool, error) { return false, d.step("apply") }

func (d *desk) Applied(context.Context, firstcome.Change, bool) error {
	d.pending = nil
	return nil
}

func (d *desk) MayIssue(context.Context, firstcome.CampaignID) error { return d.fails["may issue"] }

func (d *desk) Refusal(context.Context, firstcome.CampaignID, int64) (refusal, err error) {
	return nil, nil
}

func (d *desk) Newest(context.Context, firstcome.CampaignID) error { return d.fails["newest"] }

func (d *desk) Created(context.Context, firstcome.CampaignID) (bool, error) {
	return d.made, d.fails["made"]
}

func (d *desk) Reconcile(context.Context, string, firstcome.CampaignID) (recovery.Reconciled, error) {
	return recovery.Reconciled{}, d.step("reconcile")
}

func (d *desk) Estimate(context.Context, firstcome.CampaignID) (recovery.Estimate, error) {
	return recovery.Estimate{}, d.step("estimate")
}

func (d *desk) Rebuild(context.Context, string, firstcome.CampaignID, recovery.Order) (recovery.Rebuilt, error) {
	return recovery.Rebuilt{}, d.step("rebuild")
}

// local and remote return an Operator at the desk.
func (d *desk) local() *operate.Operator {
	return operate.New(operate.Ledger{Campaigns: d, Letters: d, Reads: d}, d, d)
}

func (d *desk) remote() *operate.Operator {
	return operate.NewRemote(operate.Ledger{Campaigns: d, Letters: d, Reads: d}, d, d, gate.NewChanger(d, d, nil), d, d)
}

// do calls a method of an Operator with a context and zero values.
func do(t *testing.T, o *operate.Operator, name string) error {
	t.Helper()
	method := reflect.ValueOf(o).MethodByName(name)
	args := []reflect.Value{reflect.ValueOf(t.Context())}
	for in := 1; in < method.Type().NumIn(); in++ {
		args = append(args, reflect.Zero(method.Type().In(in)))
	}
	results := method.Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	return err
}

// TestEveryChangeEndsTheLeasesBeforeItBegins calls each method of an Operator, by reflection.
func TestEveryChangeEndsTheLeasesBeforeItBegins(t *testing.T) {
	for method := range reflect.TypeFor[*operate.Operator]().Methods() {
		local, remote, behind := "end leases, number, grant leases", "end leases, number, apply, grant leases", "end leases, number, apply, number, apply, grant leases"
		switch method.Name {
		case "Replay", "ReplayLetters":
			local, remote, behind = "replay", "replay", "replay"
		case "Rebuild":
			local, remote, behind = "", "end leases, rebuild, grant leases", "end leases, rebuild, grant leases"
		case "Reconcile":
			local, remote, behind = "", "end leases, reconcile, grant leases", "end leases, reconcile, grant leases"
		case "Estimate":
			local, remote, behind = "", "estimate", "estimate"
		case "Issue":
			local, remote, behind = "claim", "claim", "claim"
		}
		for want, d := range map[string]*desk{local: {}, remote: {}, behind: {pending: []firstcome.Change{{Campaign: "c", Version: 6}}}} {
			d.letter = ledger.DeadLetter{ID: 1, Campaign: "c", Number: 2}
			o := d.remote()
			if want == local {
				o = d.local()
			}
			err := do(t, o, method.Name)
			if want == "" && errors.Is(err, operate.ErrNoRemoteGate) {
				err = nil
			}
			if err != nil || strings.Join(d.steps, ", ") != want {
				t.Errorf("%s does %v, want %s; %v", method.Name, d.steps, want, err)
			}
		}
	}
}

// TestWhatBecameOfManyLettersIsTold resolves four letters. The ledger refuses one, another operator resolves one, or the ledger fails at one.
func TestWhatBecameOfManyLettersIsTold(t *testing.T) {
	four := []ledger.DeadLetter{{ID: 3}, {ID: 4}, {ID: 7}, {ID: 9}}
	for what, c := range map[string]struct {
		fails map[int64]error
		want  operate.Resolved
		err   error
	}{
		"all are resolved":           {nil, operate.Resolved{Done: 4, After: 9, Remaining: 5}, nil},
		"one is refused, one gone":   {map[int64]error{4: record.ErrRefused, 7: firstcome.ErrResolvedLetter}, operate.Resolved{Done: 2, Refused: []int64{4}, After: 9, Remaining: 5}, nil},
		"it fails in the middle":     {map[int64]error{7: errAway}, operate.Resolved{Done: 2, After: 4, Remaining: 7, Stopped: errAway}, nil},
		"it fails at the first":      {map[int64]error{3: errAway}, operate.Resolved{Remaining: 9}, errAway},
		"the gate lacks the second":  {map[int64]error{4: gate.ErrUnfinished}, operate.Resolved{Done: 2, After: 4, Remaining: 7, Stopped: gate.ErrUnfinished}, nil},
		"an earlier one is on a way": {map[int64]error{4: errors.Join(firstcome.ErrPending, gate.ErrUnfinished)}, operate.Resolved{Done: 1, After: 3, Remaining: 8, Stopped: errors.Join(firstcome.ErrPending, gate.ErrUnfinished)}, nil},
	} {
		d := &desk{letters: four, resolve: func(letter int64) error { return c.fails[letter] }}
		got, err := d.local().ReplayLetters(t.Context(), "op", ledger.Letters{})
		if !errors.Is(err, c.err) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v, %v", what, got, err, c.want, c.err)
		}
	}
}

func TestALetterWithoutACouponChangesNoCampaign(t *testing.T) {
	d := &desk{letter: ledger.DeadLetter{ID: 1}}
	if err := do(t, d.remote(), "VoidLetter"); err != nil || strings.Join(d.steps, ", ") != "number" {
		t.Errorf("it does %v; %v", d.steps, err)
	}
}

func TestANumberThatTheLedgerDoesNotHaveIsOnItsWayOrNoCoupon(t *testing.T) {
	for number, want := range map[int64]error{3: firstcome.ErrNotRecorded, 4: firstcome.ErrNoCoupon} {
		d := &desk{fails: map[string]error{"number": firstcome.ErrNotRecorded}}
		if _, err := d.remote().Void(t.Context(), "op", "c", number, "r"); !errors.Is(err, want) {
			t.Errorf("number %d: %v", number, err)
		}
	}
}

// TestF54ACampaignThatTheLedgerHasForgottenIsNotMadeAgain has a gate that once had the campaign.
func TestF54ACampaignThatTheLedgerHasForgottenIsNotMadeAgain(t *testing.T) {
	unknown := map[string]error{"read": firstcome.ErrNoCampaign}
	for what, test := range map[string]struct {
		desk  desk
		want  error
		steps string
	}{
		"the ledger has forgotten it":    {desk{made: true, fails: unknown}, gate.ErrLedgerForgot, "end leases, grant leases"},
		"another node makes it":          {desk{made: true, fails: map[string]error{"number": firstcome.ErrCampaignExists}}, firstcome.ErrCampaignExists, "end leases, number, grant leases"},
		"the ledger does not answer":     {desk{made: true, fails: map[string]error{"read": errAway}}, errAway, "end leases, grant leases"},
		"the gate does not answer":       {desk{made: true, fails: map[string]error{"made": errAway}}, nil, "end leases, number, apply, grant leases"},
		"nobody knows any such campaign": {desk{}, nil, "end leases, number, apply, grant leases"},
	} {
		d := test.desk
		err := do(t, d.remote(), "Create")
		if !errors.Is(err, test.want) || strings.Join(d.steps, ", ") != test.steps {
			t.Errorf("%s: it does %v, want %s; %v", what, d.steps, test.steps, err)
		}
	}
}

var errAway = errors.New("away")
