package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// campaigns says whether the ledger's campaigns are those that a node with this gate and secret decides. What cannot
// be read of the ledger has been reported before.
func (c *doctorCmd) campaigns(ctx context.Context, t terminal) (found doctor.Findings) {
	_ = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		all, err := l.Reads.Campaigns(ctx, "", math.MaxInt32)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(c ledger.Status) bool { return !c.RetiredAt.IsZero() })
		if text, err := secretText(t, c.SecretFile, c.Ledger.path()); err == nil && text != nil {
			if secret, err := parseSecret(text); err == nil {
				found = secretOf(all, secret.Fingerprint())
			}
		}
		if c.Gate.kind() != nil {
			found = append(found, gateCampaigns(ctx, c.Gate, l, all)...)
		}
		return nil
	})
	return found
}

// gateCampaigns says whether Redis has those of the ledger's campaigns that a gate beside the ledger decides, and
// whether the ledger has what Redis was told that it has. It reads only.
func gateCampaigns(ctx context.Context, at gateName, l *ledger.Ledger, all []ledger.Status) (found doctor.Findings) {
	const what = "the gate's campaigns"
	markers := map[firstcome.CampaignID]string{}
	for _, c := range all {
		markers[c.ID] = c.Marker
	}
	gate, err := at.kind().inspect(ctx, at.url(), l, func(_ context.Context, id firstcome.CampaignID) (string, error) { return markers[id], nil })
	if err != nil {
		return nil // the examination of the gate says it
	}
	defer gate.Close()
	masters, err := gate.Masters(ctx)
	if err != nil {
		masters = nil // who may not ask hears nothing of it
	}
	own, wrong := 0, map[plight][]ill{}
	for _, c := range all {
		if !c.Remote() {
			continue
		}
		own++
		is, why, err := plightOf(ctx, l, gate, masters, &c)
		if err != nil {
			found.Add(doctor.Fail, what, "do what the message says", "they cannot be read: %v", err)
			return found
		}
		if is != fine {
			wrong[is] = append(wrong[is], ill{string(c.ID), why})
		}
	}
	if len(wrong) == 0 {
		found.Add(doctor.OK, what, "", "%d of the ledger %s", own, l.Identity())
	}
	const runbook = "docs/runbooks/FirstcomeGateLost.md"
	this := "this Redis (which is " + gate.Name() + ")"
	bring := "name their gate with --gate, or bring that Redis back with its data; if that is gone, and this one is to decide: " + orders("rebuild", wrong[elsewhere]) + "; see " + runbook
	grade, leave := doctor.Warn, "nothing, if they are in the ledger: firstcome audit says so where --gate names theirs"
	if gate.Name() == "" {
		this = "this Redis (which has no name: it was emptied, or never was a gate)"
		bring += "; if this Redis is meant to be new, start serve once with --new-gate before"
		grade, leave = doctor.Fail, bring // they keep it from getting a name
	}
	tell := func(all []ill, grade doctor.Grade, fix, text string) {
		if len(all) > 0 {
			found.Add(grade, what, fix, "%s: %s", fmt.Sprintf(text, len(all)), someOf(textsOf(all, func(one ill) string { return one.id + " (" + one.why + ")" })))
		}
	}
	tell(wrong[elsewhere], doctor.Fail, bring, "%d campaigns are decided by another gate than "+this)
	tell(wrong[past], grade, leave, "%d closed campaigns were decided by another gate than "+this)
	tell(wrong[lost], doctor.Fail, "bring its data back; if it is gone, and this is the Redis that is to decide: "+orders("rebuild", wrong[lost])+"; see "+runbook, "Redis has lost %d campaigns")
	tell(wrong[rebuilding], doctor.Warn, "nothing, if a node is at it. If none is: "+orders("rebuild", wrong[rebuilding]), "%d campaigns are being rebuilt, and nothing of them is decided meanwhile")
	tell(wrong[unverified], doctor.Warn, "nothing, if a node runs: it verifies or rebuilds them within seconds. If they stay so: "+orders("rebuild", wrong[unverified])+"; see docs/runbooks/FirstcomeGateLost.md",
		"%d campaigns are not decided until a node has held them against the ledger")
	tell(wrong[outlived], doctor.Fail, "see that all nodes reach the same Redis; if that is this one: "+orders("rebuild", wrong[outlived])+"; see docs/runbooks/FirstcomeStaleEpoch.md",
		"of %d campaigns Redis is in an epoch that has ended, so another one came in its place, and nothing of them is decided here")
	found = append(found, lostNumbers(ctx, l, all)...)
	tell(wrong[ahead], doctor.Fail, "bring the newer ledger back, or bring back what Redis has: "+orders("reconcile", wrong[ahead])+"; see docs/runbooks/FirstcomeLedgerRolledBack.md",
		"of %d campaigns Redis knows more than the ledger "+l.Identity()+" has, so the ledger is older than it was")
	return append(found, forgottenBy(ctx, l, gate)...)
}

// An ill campaign is one with a plight.
type ill struct{ id, why string }

// orders returns what to type for each campaign that a finding names, and for all of them if there are more.
func orders(verb string, all []ill) string {
	commands := textsOf(all[:min(len(all), namedCampaigns)], func(one ill) string { return "firstcome gate " + verb + " " + one.id })
	if len(all) > namedCampaigns {
		commands = append(commands, "or firstcome gate "+verb+" --all")
	}
	return strings.Join(commands, ", ") + ", beside a node"
}

// textsOf returns a text of each of some values.
func textsOf[V any](all []V, of func(V) string) (texts []string) {
	for _, one := range all {
		texts = append(texts, of(one))
	}
	return texts
}

// lostNumbers says what rebuilds of open campaigns have lost.
func lostNumbers(ctx context.Context, l *ledger.Ledger, all []ledger.Status) (found doctor.Findings) {
	var numbers int64
	var of []string
	for _, c := range all {
		if !c.Remote() || isClosed(&c) {
			continue
		}
		ranges, err := l.Reads.Lost(ctx, c.ID)
		if err != nil || len(ranges) == 0 { // the audit says what cannot be read
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
		found.Add(doctor.Warn, "lost numbers", "nothing: no number is given again. Whoever was answered \"recorded\": false with one may claim again; the audit log says when",
			"rebuilds of gates lost %s: %s", counted(numbers, "number", "s"), someOf(of))
	}
	return found
}

// A plight is what is the matter with a campaign that a gate decides.
type plight int

const (
	fine       plight = iota
	elsewhere         // another gate decides it
	past              // another gate decided it, and it is closed
	lost              // Redis had it
	rebuilding        // its gate is made anew
	unverified        // its server is another run than the one that decided last
	ahead             // the ledger has less of it than Redis was told
	outlived          // Redis is in an epoch of it that has ended
)

// An examinedGate is a gate as doctor asks it of campaigns.
type examinedGate interface {
	gate.Counters
	Name() string // as campaigns have it
	// Masters returns the runs of the servers that decide.
	Masters(ctx context.Context) (map[string]bool, error)
	// DecidedBy returns the run that decided a campaign last, and whether the campaign is frozen.
	DecidedBy(ctx context.Context, id firstcome.CampaignID) (run string, frozen bool, err error)
	// spoiled reports whether an error means that what the gate has of a campaign cannot be read.
	spoiled(err error) bool
}

// plightOf tells what is the matter with a campaign, given the runs of the gate's servers; nil: nobody may know.
func plightOf(ctx context.Context, l *ledger.Ledger, far examinedGate, masters map[string]bool, c *ledger.Status) (is plight, why string, err error) {
	if c.Gate != far.Name() {
		return map[bool]plight{true: past, false: elsewhere}[isClosed(c)], c.Gate, nil
	}
	if c.Rebuilding {
		return rebuilding, fmt.Sprintf("out of epoch %d", c.Epoch), nil
	}
	at, err := far.State(ctx, c.ID)
	switch none := errors.Is(err, firstcome.ErrNoCampaign); {
	case none && c.Applied == 0: // it is being made
		return fine, "", nil
	case none, far.spoiled(err):
		return lost, err.Error(), nil
	case err != nil:
		return fine, "", err
	}
	// It is asked after Redis, because a campaign goes on meanwhile.
	has, err := l.Recorder.DrainedThrough(ctx, c.ID)
	if err != nil {
		return fine, "", err
	}
	if has < at.DrainedThrough {
		return ahead, fmt.Sprintf("numbers up to %d, and the ledger has them up to %d", at.DrainedThrough, has), nil
	}
	now, err := l.Reads.Campaign(ctx, c.ID)
	switch {
	case err == nil && (now.Version < at.Version || now.Epoch < at.Epoch): // of terms that cannot be read the audit says so
		return ahead, fmt.Sprintf("version %d of epoch %d, and the ledger is at %d of %d", at.Version, at.Epoch, now.Version, now.Epoch), nil
	case at.Epoch < c.Epoch: // which was read before
		return map[bool]plight{true: rebuilding, false: outlived}[at.Frozen], fmt.Sprintf("epoch %d, and the ledger is in %d", at.Epoch, c.Epoch), nil
	case at.Lost:
		return lost, "a part of it is gone", nil
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

// isClosed tells whether a campaign issues nothing any more, as the ledger knows it.
func isClosed(c *ledger.Status) bool {
	return c.Closed || !c.ClosesAt.IsZero() && !c.Now.Before(c.ClosesAt)
}

// namedCampaigns is how many campaigns a finding names.
const namedCampaigns = 5

// secretOf says whether the campaigns' codes are made with the secret of a fingerprint.
func secretOf(all []ledger.Status, fingerprint string) (found doctor.Findings) {
	const what, fix = "the codes' secret", "give this node the secret of the others, with FIRSTCOME_SECRET or --secret-file: see operate.md, the secret"
	others := map[doctor.Grade][]string{}
	for _, c := range all {
		grade := doctor.Fail
		if isClosed(&c) {
			grade = doctor.Warn // its holders still ask for their coupons
		}
		if c.Secret != fingerprint {
			others[grade] = append(others[grade], fmt.Sprintf("%s (%s)", c.ID, c.Secret))
		}
	}
	for _, grade := range []doctor.Grade{doctor.Fail, doctor.Warn} {
		if ids := others[grade]; len(ids) > 0 {
			slices.Sort(ids)
			found.Add(grade, what, fix, "its fingerprint is %s, and this node decides nothing of %s with another: %s", fingerprint,
				counted(int64(len(ids)), "campaign", "s"), someOf(ids))
		}
	}
	if len(found) == 0 {
		found.Add(doctor.OK, what, "", "its fingerprint is %s, as that of all campaigns", fingerprint)
	}
	return found
}
