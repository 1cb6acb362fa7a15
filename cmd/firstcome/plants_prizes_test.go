package main

import (
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// ranks makes campaigns with prizes whose gate was rebuilt: see prizes, and one that was closed before, so that no terms skip its numbers; and one whose
// prizes an operator moves, which its gate has not heard of.
func (s *scene) ranks() {
	s.prizes()
	s.create("ended", firstcome.Terms{Quantity: 3})
	s.applied("ended", false)
	s.keep("ended", 1, 1, 1)
	s.turn("ended", firstcome.ChangeClose)
	s.applied("ended", false)
	s.rebuilt("ended", 0)
	s.create("moving", firstcome.Terms{Quantity: 3, Prizes: twoPrizes()})
	s.applied("moving", false)
	s.prizesOf("moving", func(p []firstcome.Prize) { p[0].Quantity = 1 })
}

// twoPrizes are a drink for the first two, and free shipping for all others.
func twoPrizes() []firstcome.Prize {
	return []firstcome.Prize{{ID: "drink", Name: "A drink", Quantity: 2}, {ID: "shipping", Name: "Free shipping"}}
}

// prizes has the numbers 1 and 2, and 3, a dead letter. Its first epoch ends with number 7. Number 4 was given, as the frozen gate knows, and the numbers
// 5 to 7 have no rank. Number 8, of the second epoch, has rank 5, and number 9, of terms with another name of the drink, has rank 6. The numbers 10 and
// 11 have no rank, and number 12, of the third epoch, has rank 7.
func (s *scene) prizes() {
	const id = "prizes"
	s.create(id, firstcome.Terms{Quantity: 6, Prizes: twoPrizes()})
	s.applied(id, false)
	s.prizesOf(id, func(p []firstcome.Prize) { p[0].Quantity = 1 }) // version 2
	s.applied(id, true)
	s.keep(id, 1, 1, 1, 2)
	stage.Must(s.t, stage.Err(s.Recorder.Bury(s.t.Context(), s.given(id, 1, 1, 3), "a trial")))
	s.rebuilt(id, 4) // versions 3 and 4
	s.keep(id, 2, 4, 8)
	s.prizesOf(id, func(p []firstcome.Prize) { p[0].Name = "A large drink" }) // version 5
	s.applied(id, false)
	s.keep(id, 2, 5, 9)
	s.rebuilt(id, 0) // versions 6 and 7
	s.keep(id, 3, 7, 12)
}

func (s *scene) prizesOf(id firstcome.CampaignID, edit func([]firstcome.Prize)) {
	stage.Must(s.t, stage.Err(s.Campaigns.SetTerms(s.t.Context(), "op", id, 0, func(t *firstcome.Terms) {
		t.Prizes = slices.Clone(t.Prizes)
		edit(t.Prizes)
	})))
}

// given is coupons of a campaign of a remote gate, as it issued them in an epoch by the terms of a version.
func (s *scene) given(id firstcome.CampaignID, epoch, version int64, numbers ...int64) record.Batch {
	b := record.Batch{Campaign: id, Epoch: epoch}
	for _, n := range numbers {
		c := s.issued(n, version, firstcome.UserID("p"+string(rune('a'+n))))
		c.Campaign, c.Code = id, plantSecret.Code(id, n)
		b.Coupons = append(b.Coupons, c)
	}
	return b
}

// keep records coupons: see given.
func (s *scene) keep(id firstcome.CampaignID, epoch, version int64, numbers ...int64) {
	stage.Must(s.t, stage.Err(s.Recorder.Record(s.t.Context(), s.given(id, epoch, version, numbers...))))
}

// rebuilt ends a campaign's epoch. last is the last number that the frozen gate knows.
func (s *scene) rebuilt(id firstcome.CampaignID, last int64) {
	ctx := s.t.Context()
	r, err := s.Epochs.BeginRebuild(ctx, "op", id, 0)
	stage.Must(s.t, err)
	mark, err := s.Epochs.Refills(ctx, id, func(firstcome.Coupon) error { return nil })
	stage.Must(s.t, err)
	stage.Must(s.t, stage.Err(s.Epochs.FinishRebuild(ctx, r, recovery.Loaded{Mark: mark}, recovery.Frozen{LastNumber: last})))
}

// prizePlants are the plants in the campaigns of ranks.
var prizePlants = []plant{
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 4", to: "skipped + 1", found: "P10 skipped:"},
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 5", to: "0", found: "P10 skipped:"},
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 4", to: "6", found: "P10 ranks:"},
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 1", to: "1", found: "P10 ranks:"},
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 7", to: "skipped - 1", found: "P10: the terms of version 7 skip 4 numbers, by their payload 5"},
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 3", to: "skipped - 1", found: "P10: version 3 skipped 2 numbers, by its payload 3"},
	{column: "changes.skipped", where: "campaign_id = 'prizes' AND version = 3", to: "5", found: "P10 skipped_lost:"},
	{column: "changes.skipped", where: "campaign_id = 'spring' AND version = 3", to: "1", found: "P10 skipped_next:"},
	{column: "changes.kind", where: "campaign_id = 'prizes' AND version = 4", to: "'pause'", found: "P10 skipped_next:"},
	{column: "changes.kind", where: "campaign_id = 'ended' AND version = 2", to: "'pause'", found: "P10 skipped_next:"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 3", to: `REPLACE(payload, '"through":7', '"through":6')`, found: "P10 skipped_lost:"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 4", to: `REPLACE(payload, '"after":7', '"after":6')`, found: "P10: the terms of version 4 have the pairs 6/3, but the rebuilds before them make 7/3"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 5", to: `REPLACE(payload, '"skips":[{"after":7,"skipped":3}]', '"skips":[]')`, found: "P10: the terms of version 5 have the pairs none, but the rebuilds before them make 7/3"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 7", to: `REPLACE(payload, '{"after":7,"skipped":3},', '')`, found: "P10: number 8 has rank 5 by its terms, of version 4, but rank 3 by the skipped numbers below it"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 1", to: `REPLACE(payload, '"quantity":2', '"quantity":3')`, found: "P10: the terms of version 4 move prizes, but number 1 was issued by those of version 1"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 5", to: `REPLACE(payload, '"id":"drink"', '"id":"tea"')`, found: "P10: the terms of version 5 move prizes"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 7", to: `REPLACE(payload, '"quantity":2', '"quantity":7')`, found: "changes: version 7 has invalid terms: quantity"},
	{column: "changes.payload", where: "campaign_id = 'prizes' AND version = 5", to: `REPLACE(payload, 'A large drink', 'Tea')`, once: "of terms: names and benefits"},
	{column: "campaigns.burns", where: "id = 'empty'", to: "TRUE", found: "changes phase:"},
	{column: "campaigns.burns", where: "id = 'vouchers'", to: "FALSE", found: "changes turns:"},
	{column: "campaigns.quantity", where: "id = 'vouchers'", to: "3", found: "changes terms:"},
	{column: "changes.payload", where: "campaign_id = 'vouchers' AND kind = 'void'", to: `REPLACE(payload, ',"burns":true', '')`, found: "changes terms:"},
	{column: "changes.payload", where: "campaign_id = 'vouchers' AND kind = 'resume'", to: `REPLACE(payload, 'entries', 'many')`, found: "unreadable: version 2: it is a resume"},
	{column: "code_lists.campaign_id", where: "campaign_id = 'vouchers'", to: "'spring'", once: "whose list it is; coupons of that campaign are then answered without a code"},
	{column: "code_lists.prize_id", where: "campaign_id = 'vouchers'", to: "'other'", once: "of which prize"},
	{column: "code_lists.entries", where: "campaign_id = 'vouchers'", to: "2", once: "how many of its entries count"},
	{column: "code_lists.digest", where: "campaign_id = 'vouchers'", to: "NULL", once: "the digest of its codes; a resume notes it"},
	{column: "code_lists.attempt", where: "campaign_id = 'vouchers'", to: "7", once: "the last import that began"},
	{column: "code_lists.importing_at", where: "campaign_id = 'vouchers'", to: "7", once: "when an import last wrote"},
	{column: "code_entries.campaign_id", where: "entry = 2", to: "'spring'", once: "whose entry it is; its code can then not be opened"},
	{column: "code_entries.prize_id", where: "entry = 2", to: "'other'", once: "of which prize; its code can then not be opened"},
	{column: "code_entries.entry", where: "entry = 2", to: "9", once: "which entry; its code can then not be opened"},
	{column: "code_entries.sealed", where: "entry = 2", to: "mac", once: "the code; if it cannot be opened, its user gets 503"},
	{column: "code_entries.mac", where: "entry = 2", to: "sealed", once: "the code's HMAC"},
	{column: "changes.refused", where: "campaign_id = 'prizes' AND version = 2", to: "FALSE", found: "P10: the terms of version 2 move prizes"},
	{column: "campaigns.terms_version", where: "id = 'moving'", to: "2", found: "changes: the campaign has the terms of version 2, but by its changes those of version 1"},
	{column: "coupons.number", where: "campaign_id = 'prizes' AND number = 8", to: "7", found: "P10: the numbers 5 to 7 have no rank, but number 7 is a coupon"},
	{column: "coupons.terms_version", where: "campaign_id = 'prizes' AND number = 8", to: "1", found: "P10: number 8 has rank 8 by its terms, of version 1, but rank 5 by the skipped numbers below it"},
	{column: "coupons.terms_version", where: "campaign_id = 'prizes' AND number = 12", to: "5", found: "P10: number 12 has rank 9 by its terms"},
	{column: "dead_letters.number", where: "campaign_id = 'prizes' AND number = 3", to: "5", found: "P10: the numbers 5 to 7 have no rank, but number 5 is a dead letter"},
	{column: "lost.number", where: "campaign_id = 'prizes' AND number = 10", to: "9", found: "P10 skipped_lost:"},
	{column: "lost.count", where: "campaign_id = 'prizes' AND number = 4", to: "2", found: "P10: the numbers 5 to 7 have no rank, but 1 of these 3 are lost"},
	{column: "lost.epoch", where: "campaign_id = 'prizes' AND number = 4", to: "3", found: "P10 skipped_lost:"},
	{column: "lost.*", where: "campaign_id = 'prizes' AND number = 10", found: "P10: the numbers 10 to 11 have no rank, but 0 of these 2 are lost"},
}
