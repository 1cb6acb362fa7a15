package record_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

func TestTheSameAlarmOfACampaignIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		alarms := record.Alarms{On: func(id firstcome.CampaignID, err error) { told = append(told, string(id)+": "+err.Error()) }}
		for second := range 100 {
			alarms.Raise("c", gate.ErrGone)
			if second >= 30 {
				alarms.Raise("c", gate.ErrRetired)
			}
			time.Sleep(time.Second)
		}
		alarms.Raise("d", gate.ErrGone)
		lost, retired := "c: "+gate.ErrGone.Error(), "c: "+gate.ErrRetired.Error()
		if want := []string{lost, retired, lost, retired, "d: " + gate.ErrGone.Error()}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}
