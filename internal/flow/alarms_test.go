package flow_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

func TestTheSameAlarmOfACampaignIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		alarms := flow.Alarms{On: func(id firstcome.CampaignID, err error) { told = append(told, string(id)+": "+err.Error()) }}
		for second := range 100 {
			alarms.Tell("c", flow.ErrLost)
			if second >= 30 {
				alarms.Tell("c", flow.ErrRetired)
			}
			time.Sleep(time.Second)
		}
		alarms.Tell("d", flow.ErrLost)
		lost, retired := "c: "+flow.ErrLost.Error(), "c: "+flow.ErrRetired.Error()
		if want := []string{lost, retired, lost, retired, "d: " + flow.ErrLost.Error()}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}
