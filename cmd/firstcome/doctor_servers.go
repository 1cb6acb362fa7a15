package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// campaigns reports whether a node with this gate and secret decides the ledger's campaigns. Earlier findings have the errors of reading the ledger.
func (c *doctorCmd) campaigns(ctx context.Context, t terminal) (found doctor.Findings) {
	_ = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		all, err := l.Reads.Campaigns(ctx, "", math.MaxInt32)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(c ledger.Status) bool { return !c.RetiredAt.IsZero() })
		if text, err := secretText(t, c.SecretFile, c.Ledger.path()); err == nil && text != nil {
			if secret, err := parseSecret(text); err == nil {
				found = checkSecret(all, secret)
			}
		}
		if c.Gate.kind() != nil {
			found = append(found, gateCampaigns(ctx, c.Gate, l, all)...)
		}
		return nil
	})
	return found
}

// gateCampaigns reports whether Redis has the ledger's campaigns that a gate beside the ledger decides, and whether the ledger still has all coupons
// that Redis was told are recorded. It only reads.
func gateCampaigns(ctx context.Context, at gateName, l *ledger.Ledger, all []ledger.Status) (found doctor.Findings) {
	const what = "the gate's campaigns"
	markers := map[firstcome.CampaignID]string{}
	for _, c := range all {
		markers[c.ID] = c.CampaignUID
	}
	gate, err := at.kind().inspect(ctx, at.url(), l, func(_ context.Context, id firstcome.CampaignID) (string, error) { return markers[id], nil })
	if err != nil {
		return nil // the finding about the gate has the error
	}
	defer gate.Close()
	masters, err := gate.Masters(ctx)
	if err != nil {
		masters = nil // unknown, for example without the right to ask
	}
	own, wrong := 0, map[condition][]troubled{}
	for _, c := range all {
		if !c.Remote() {
			continue
		}
		own++
		is, why, err := conditionOf(ctx, l, gate, masters, &c)
		if err != nil {
			found.Add(doctor.Fail, what, "do what the message says", "they cannot be read: %v", err)
			return found
		}
		if is != fine {
			wrong[is] = append(wrong[is], troubled{string(c.ID), why})
		}
	}
	if len(wrong) == 0 {
		found.Add(doctor.OK, what, "", "%d of the ledger %s", own, l.Identity())
	}
	const runbook = "docs/runbooks/FirstcomeGateLost.md"
	this := "this Redis (which is " + gate.Name() + ")"
	bring := "name their gate with --gate, or restore that Redis with its data; if it is gone and this Redis should take over: " + orders("rebuild", wrong[elsewhere]) + "; see " + runbook
	grade, leave := doctor.Warn, "nothing, if all their coupons are in the ledger: check with firstcome audit and their gate in --gate"
	if gate.Name() == "" {
		this = "this Redis (which has no name: it was emptied, or was never a gate)"
		bring += "; if this Redis is a new one, first start serve once with --new-gate"
		grade, leave = doctor.Fail, bring // these campaigns keep this Redis from getting a name
	}
	tell := func(all []troubled, grade doctor.Grade, fix, text string) {
		if len(all) > 0 {
			found.Add(grade, what, fix, "%s: %s", fmt.Sprintf(text, len(all)), someOf(textsOf(all, func(one troubled) string { return one.id + " (" + one.why + ")" })))
		}
	}
	tell(wrong[elsewhere], doctor.Fail, bring, "%d campaigns are decided by another gate than "+this)
	tell(wrong[past], grade, leave, "%d closed campaigns were decided by another gate than "+this)
	tell(wrong[isGone], doctor.Fail, "restore its data; if the data is gone and this Redis should decide: "+orders("rebuild", wrong[isGone])+"; see "+runbook, "Redis has lost %d campaigns")
	tell(wrong[rebuilding], doctor.Warn, "nothing, if a node is rebuilding them. Otherwise: "+orders("rebuild", wrong[rebuilding]), "%d campaigns are being rebuilt, and no claim on them is decided until then")
	tell(wrong[unverified], doctor.Warn, "nothing, if a node runs: it verifies or rebuilds them within seconds. If the finding stays: "+orders("rebuild", wrong[unverified])+"; see docs/runbooks/FirstcomeGateLost.md",
		"%d campaigns are not decided until a node has checked them against the ledger")
	tell(wrong[outlived], doctor.Fail, "make sure that all nodes reach the same Redis; if it is this one: "+orders("rebuild", wrong[outlived])+"; see docs/runbooks/FirstcomeStaleEpoch.md",
		"the epoch of %d campaigns on this Redis has ended, because another Redis replaced it, so no claim on them is decided here")
	tell(wrong[creating], doctor.Warn, "nothing, if a node runs: it brings them there within seconds, if Redis takes changes. If the finding stays, see docs/runbooks/FirstcomeChangesPending.md",
		"the creation of %d campaigns has not reached Redis, and no claim on them is decided until then")
	found = append(found, lostNumbers(ctx, l, all)...)
	tell(wrong[ahead], doctor.Fail, "restore the newer ledger, or copy the data of Redis into this one: "+orders("reconcile", wrong[ahead])+"; see docs/runbooks/FirstcomeLedgerRolledBack.md",
		"Redis is ahead of the ledger "+l.Identity()+" in %d campaigns, so the ledger is older than it was")
	return append(found, forgottenBy(ctx, l, gate)...)
}

// A troubled is a campaign that is not fine, and why.
type troubled struct{ id, why string }

// orders returns the commands to type for the campaigns that a finding names, and for all if there are more.
func orders(verb string, all []troubled) string {
	commands := textsOf(all[:min(len(all), namedCampaigns)], func(one troubled) string { return "firstcome gate " + verb + " " + one.id })
	if len(all) > namedCampaigns {
		commands = append(commands, "or firstcome gate "+verb+" --all")
	}
	return strings.Join(commands, ", ") + ", while a node runs"
}

// textsOf returns the text that of returns for each value.
func textsOf[V any](all []V, of func(V) string) (texts []string) {
	for _, one := range all {
		texts = append(texts, of(one))
	}
	return texts
}

// lostNumbers reports the numbers that rebuilds of open campaigns have lost.
func lostNumbers(ctx context.Context, l *ledger.Ledger, all []ledger.Status) (found doctor.Findings) {
	var numbers int64
	var of []string
	for _, c := range all {
		if !c.Remote() || isClosed(&c) {
			continue
		}
		ranges, err := l.Reads.Lost(ctx, c.ID)
		if err != nil || len(ranges) == 0 { // the audit reports ranges that cannot be read
			continue
		}
		count := int64(0)
		for _, r := range ranges {
			count += r.Count
		}
		numbers += count
		last := ranges[len(ranges)-1]
		of = append(of, fmt.Sprintf("%s (%d, the last ones %d to %d)", c.ID, count, last.First, last.First+last.Count-1))
	}
	if len(of) > 0 {
		found.Add(doctor.Warn, "lost numbers", "nothing: lost numbers are never assigned again. Users who were answered with one and \"recorded\": false may claim again; the audit log has the times",
			"rebuilds of gates lost %s: %s", counted(numbers, "number", "s"), someOf(of))
	}
	return found
}

// A condition is the state of a campaign that a gate beside the ledger decides.
type condition int

const (
	fine       condition = iota
	elsewhere            // another gate decides it
	past                 // another gate decided it, and it is closed
	isGone               // Redis had it, and has lost all or a part of it
	rebuilding           // its gate is being rebuilt
	unverified           // its server is another run than the one that decided last, or its keys are older than the ledger
	ahead                // Redis is ahead of the ledger
	outlived             // its epoch on Redis has ended
	creating             // its creation has not reached Redis
)

// An examinedGate is a gate whose campaigns doctor examines.
type examinedGate interface {
	gate.Counters
	Name() string // the gate's name in the ledger's campaigns
	// Masters returns the runs of the servers that decide.
	Masters(ctx context.Context) (map[string]bool, error)
	// DecidedBy returns the run that decided a campaign last, and whether the campaign is frozen.
	DecidedBy(ctx context.Context, id firstcome.CampaignID) (run string, frozen bool, err error)
	// spoiled reports whether an error means that the gate's data of a campaign cannot be read.
	spoiled(err error) bool
}

// conditionOf returns the condition of a campaign, and why it is not fine. masters has the runs of the gate's servers, or is nil if they are unknown.
func conditionOf(ctx context.Context, l *ledger.Ledger, far examinedGate, masters map[string]bool, c *ledger.Status) (is condition, why string, err error) {
	if c.Gate != far.Name() {
		return map[bool]condition{true: past, false: elsewhere}[isClosed(c)], c.Gate, nil
	}
	if !c.RebuildingAt.IsZero() {
		return rebuilding, fmt.Sprintf("from epoch %d", c.Epoch), nil
	}
	at, err := far.State(ctx, c.ID)
	switch none := errors.Is(err, firstcome.ErrNoCampaign); {
	case none && c.Creating():
		return creating, "created at " + c.CreatedAt.Format(time.RFC3339), nil
	case none, far.spoiled(err):
		return isGone, err.Error(), nil
	case err != nil:
		return fine, "", err
	}
	// Ask the ledger after Redis: the campaign may continue in between, so an intact ledger has at least as much.
	has, err := l.Recorder.DrainedThrough(ctx, c.ID)
	if err != nil {
		return fine, "", err
	}
	if has < at.DrainedThrough {
		return ahead, fmt.Sprintf("drained through number %d, the ledger only through %d", at.DrainedThrough, has), nil
	}
	now, err := l.Reads.Campaign(ctx, c.ID)
	switch {
	case err == nil && (now.Version < at.Version || now.Epoch < at.Epoch): // the audit reports terms that cannot be read
		return ahead, fmt.Sprintf("version %d of epoch %d, and the ledger is at version %d of epoch %d", at.Version, at.Epoch, now.Version, now.Epoch), nil
	case at.Epoch < c.Epoch: // c was read before at
		return map[bool]condition{true: rebuilding, false: outlived}[at.Frozen], fmt.Sprintf("epoch %d, and the ledger is in %d", at.Epoch, c.Epoch), nil
	case at.Gone:
		return isGone, "some of its keys are gone", nil
	case at.Epoch == c.Epoch && at.Version < c.Applied:
		return unverified, fmt.Sprintf("its keys are older than the ledger: version %d, and the ledger noted %d", at.Version, c.Applied), nil
	case masters == nil:
		return fine, "", nil
	}
	switch run, frozen, err := far.DecidedBy(ctx, c.ID); {
	case err != nil:
		return fine, "", err
	case frozen:
		return unverified, "a rebuild froze it and did not end", nil
	case !masters[run]:
		return unverified, "its server restarted, or is another one", nil
	}
	return fine, "", nil
}

// isClosed reports whether a campaign no longer issues coupons, by the ledger's terms and time.
func isClosed(c *ledger.Status) bool {
	return c.Closed || !c.ClosesAt.IsZero() && !c.Now.Before(c.ClosesAt)
}

// namedCampaigns is the most campaigns that a finding names.
const namedCampaigns = 5

// checkSecret reports whether the campaigns' codes are made with a secret, as this firstcome makes them.
func checkSecret(all []ledger.Status, secret firstcome.Secret) (found doctor.Findings) {
	const what = "the codes' secret"
	own := secret.Fingerprint()
	others, earlier := map[doctor.Grade][]string{}, map[doctor.Grade][]string{}
	for _, c := range all {
		grade := doctor.Fail
		if isClosed(&c) {
			grade = doctor.Warn // its holders still ask for their coupons
		}
		switch c.Secret {
		case own:
		case secret.EarlierFingerprint():
			earlier[grade] = append(earlier[grade], string(c.ID))
		default:
			others[grade] = append(others[grade], fmt.Sprintf("%s (%s)", c.ID, c.Secret))
		}
	}
	for _, grade := range []doctor.Grade{doctor.Fail, doctor.Warn} {
		if ids := others[grade]; len(ids) > 0 {
			slices.Sort(ids)
			found.Add(grade, what, "give this node the secret of the others, with FIRSTCOME_SECRET or --secret-file: see operate.md, the secret",
				"its fingerprint is %s, and this node decides no claim on %s with another secret: %s", own, counted(int64(len(ids)), "campaign", "s"), someOf(ids))
		}
		if ids := earlier[grade]; len(ids) > 0 {
			slices.Sort(ids)
			found.Add(grade, what, earlierCodes, "this node decides no claim on %s whose codes an earlier firstcome made: %s", counted(int64(len(ids)), "campaign", "s"), someOf(ids))
		}
	}
	if len(found) == 0 {
		found.Add(doctor.OK, what, "", "its fingerprint is %s, the same for all campaigns", own)
	}
	return found
}

// earlierCodes says what to do about campaigns whose codes an earlier firstcome made.
const earlierCodes = "serve them with the firstcome that made their codes until they are over; or close them there, and create campaigns with other ids for the coupons that are left: see operate.md, the secret"
