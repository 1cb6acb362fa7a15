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
			alarms.Raise("c", gate.ErrLost)
			if second >= 30 {
				alarms.Raise("c", gate.ErrRetired)
			}
			time.Sleep(time.Second)
		}
		alarms.Raise("d", gate.ErrLost)
		lost, retired := "c: "+gate.ErrLost.Error(), "c: "+gate.ErrRetired.Error()
		if want := []string{lost, retired, lost, retired, "d: " + gate.ErrLost.Error()}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}
