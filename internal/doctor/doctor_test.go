package doctor_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/doctor"
)

func TestFindingsKeepTheirOrderAndWhatIsOKNeedsNoFix(t *testing.T) {
	var found doctor.Findings
	found.Add(doctor.OK, "disk", "make room", "%d MiB are free", 4096)
	found.Hold(true, doctor.Fail, "clock", "set it", "in time")
	found.Hold(false, doctor.Warn, "replicas", "set min-replicas-to-write", "%d", 1)
	want := doctor.Findings{
		{Grade: doctor.OK, What: "disk", Found: "4096 MiB are free"},
		{Grade: doctor.OK, What: "clock", Found: "in time"},
		{Grade: doctor.Warn, What: "replicas", Found: "1", Fix: "set min-replicas-to-write"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyAFailFails(t *testing.T) {
	var found doctor.Findings
	found.Add(doctor.OK, "a", "", "fine")
	found.Add(doctor.Warn, "b", "look it up", "unknown")
	if found.Failed() {
		t.Errorf("a warning fails: %v", found)
	}
	found.Add(doctor.Fail, "c", "start it", "away")
	found.Add(doctor.OK, "d", "", "fine")
	if !found.Failed() {
		t.Errorf("nothing fails: %v", found)
	}
}

// Scripts read what firstcome doctor --output json prints.
func TestAFindingIsJSONWithAFixWhereThereIsOne(t *testing.T) {
	var found doctor.Findings
	found.Add(doctor.OK, "disk", "", "room")
	found.Add(doctor.Fail, "gate", "start it", "away")
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"grade":"OK","what":"disk","found":"room"},{"grade":"FAIL","what":"gate","found":"away","fix":"start it"}]`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}
