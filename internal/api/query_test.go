package api_test

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// parameters returns the query parameters of each operation in openapi.yaml.
func parameters(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	operations(t, func(method, path string, _ *openapi3.Operation, of openapi3.Parameters) {
		for _, p := range of {
			if p.Value.In == openapi3.ParameterInQuery {
				all[method+" "+path] = append(all[method+" "+path], p.Value.Name)
			}
		}
		slices.Sort(all[method+" "+path])
	})
	return all
}

// fillIn returns the path of an operation with a value for each parameter.
func fillIn(path string) string {
	return strings.NewReplacer("{id}", "c", "{user_id}", "me", "{number}", "7", "{letter}", "7").Replace(path)
}

// reasons returns the reasons in a 422 by field.
func (r reply) reasons() map[string]string {
	all := map[string]string{}
	wrong, _ := r.json("errors").([]any)
	for _, w := range wrong {
		at := w.(map[string]any)
		all[at["field"].(string)] = at["reason"].(string)
	}
	return all
}

// TestEveryOperationRefusesAParameterThatItDoesNotKnow sends an unknown parameter to every operation, also to those without credentials, and compares
// the parameters that the answer names with openapi.yaml.
func TestEveryOperationRefusesAParameterThatItDoesNotKnow(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	documented := parameters(t)
	for _, operation := range s.server.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		path = fillIn(path)
		r := s.call(method, path+"?userid=me", "").want(t, 422, "")
		known := "there is no such parameter: this has none"
		if names := documented[operation]; len(names) > 0 {
			_, list, _ := strings.Cut(r.reasons()["userid"], "this has ")
			served := strings.Split(list, ", ")
			slices.Sort(served)
			known = "there is no such parameter: this has " + list
			if !slices.Equal(served, names) {
				t.Errorf("%s has the parameters %v, and in openapi.yaml %v", operation, served, names)
			}
		}
		if got := r.reasons(); len(got) != 1 || got["userid"] != known {
			t.Errorf("%s?userid= answers %v", operation, got)
		}
		for _, name := range documented[operation] {
			r := s.call(method, path+"?"+name+"=1&"+name+"=1", "").want(t, 422, "")
			if r.reasons()[name] != "is given more than once" {
				t.Errorf("%s with %s twice answers %s", operation, name, r.body)
			}
		}
		for _, broken := range []string{"?a;b", "?%zz", "?limit=%"} {
			if r := s.call(method, path+broken, ""); r.status != 400 {
				t.Errorf("%s%s answers %d", operation, broken, r.status)
			}
		}
	}
	if c := s.call("GET", "/v1/campaigns/c", ""); c.number("version") != 1 || c.number("issued") != 0 {
		t.Errorf("what was refused was done: %s", c.body)
	}
}

func TestAFilterThatIsThereAndEmptyDoesNotChooseAll(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	for _, path := range []string{
		"/v1/campaigns/c/coupons?user_id=", "/v1/campaigns/c/coupons?code=", "/v1/campaigns/c/coupons?number=", "/v1/campaigns/c/coupons?number=0",
		"/v1/campaigns/c/facts?wait=", "/v1/audit-log?user_id=", "/v1/audit-log?campaign=", "/v1/dead-letters?campaign=",
	} {
		s.call("GET", path, "").want(t, 422, "")
	}
}

func TestCouponsAreFoundByUserCodeAndNumber(t *testing.T) {
	s := open(t)
	for _, id := range []string{"c", "other"} {
		s.create(`{"id":"` + id + `","name":"n","quantity":null}`)
		s.call("POST", "/v1/campaigns/"+id+"/coupons", `{"user_ids":["a","b","한국 100%"]}`).want(t, 200, "")
	}
	for _, number := range []string{"1", "4"} { // a had numbers 1 and 4, and has 5
		s.call("POST", "/v1/campaigns/c/coupons/"+number+"/void", `{"reason":"r"}`).want(t, 200, "")
		s.claim("c", "a").want(t, 201, "issued")
	}
	code := func(number int) string {
		return s.call("GET", "/v1/campaigns/c/coupons?voided=include&number="+strconv.Itoa(number), "").items()[0]["code"].(string)
	}
	for query, want := range map[string]string{
		"user_id=a&voided=include":                    "1 4 5",
		"user_id=a&voided=include&number=4":           "4",
		"user_id=b&voided=include":                    "2",
		"user_id=" + url.QueryEscape("한국 100%"):       "3",
		"number=9007199254740991":                     "",
		"number=2&user_id=a":                          "",
		"code=" + code(2):                             "2",
		"code=" + strings.ToLower(code(2)):            "2",
		"code=" + code(2) + "&user_id=a":              "",
		"code=" + code(2) + "&after=9007199254740991": "",
		"code=0000000000000000":                       "",
	} {
		r := s.call("GET", "/v1/campaigns/c/coupons?"+query, "").want(t, 200, "")
		if got := r.each("number"); got != want || r.text("next") != "" {
			t.Errorf("?%s has %s and next %v, want %s", query, got, r.json("next"), want)
		}
	}
	page := s.call("GET", "/v1/campaigns/c/coupons?user_id=a&voided=include&limit=2", "")
	if len(page.items()) != 2 || page.text("next") != "4" {
		t.Errorf("a page of two is %s", page.body)
	}
	for _, wrong := range []string{"user_id=%00", "code=short", "code=UUUUUUUUUUUUUUUU", "number=-1", "number=x", "number=9007199254740992"} {
		s.call("GET", "/v1/campaigns/c/coupons?"+wrong, "").want(t, 422, "")
	}
	for _, media := range []string{"text/csv", "application/x-ndjson"} {
		r := s.call("GET", "/v1/campaigns/c/coupons?user_id=a&number=1", "", "Accept", media).want(t, 422, "")
		if got := slices.Sorted(maps.Keys(r.reasons())); !slices.Equal(got, []string{"number", "user_id"}) {
			t.Errorf("as %s it is refused for %v", media, got)
		}
	}
	s.call("GET", "/v1/campaigns/none/coupons?user_id=a", "").want(t, 404, "")
}
