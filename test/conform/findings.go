package conform

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/doctor"
)

// An Examination has the findings about a server, by their subject.
type Examination map[string]doctor.Finding

// Examined returns findings by their subject. It fails unless each that is not OK has a fix, and none shows the password of the user who looked.
func Examined(t testing.TB, findings doctor.Findings, password string) Examination {
	t.Helper()
	found := Examination{}
	for _, f := range findings {
		if f.Grade != doctor.OK && f.Fix == "" {
			t.Errorf("%s has no fix: %+v", f.What, f)
		}
		if strings.Contains(f.Found+f.Fix, password) {
			t.Errorf("%s shows a password: %+v", f.What, f)
		}
		found[f.What] = f
	}
	return found
}

// Want wants each of some things to have a grade. A thing about which nothing was found has none.
func (e Examination) Want(t testing.TB, grade doctor.Grade, what ...string) {
	t.Helper()
	for _, one := range what {
		if f := e[one]; f.Grade != grade {
			t.Errorf("%s is %q, want %q: %+v", one, f.Grade, grade, f)
		}
	}
}
