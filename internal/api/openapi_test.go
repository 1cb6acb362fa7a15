package api_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

// contract reads openapi.yaml once.
var contract = sync.OnceValues(func() (routers.Router, error) {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", decodeEvent)
	spec, err := readContract()
	if err != nil {
		return nil, err
	}
	for _, schema := range spec.Components.Schemas {
		closeSchema(schema)
	}
	for _, item := range spec.Paths.Map() {
		for _, o := range item.Operations() {
			for _, response := range o.Responses.Map() {
				for _, media := range response.Value.Content {
					closeSchema(media.Schema)
				}
			}
		}
	}
	// An integer counts as its digits, which generators of clients need not know.
	spec.Components.Schemas["UserIDIn"].Value.Type = &openapi3.Types{"string", "integer"}
	spec.Components.Schemas["Benefit"].Value.Nullable = true // without a type null is allowed, but the validator forbids it
	return gorillamux.NewRouter(spec)
})

// closeSchema forbids fields that a schema does not list. Clients must accept new fields, but the tests hold the server to the contract.
func closeSchema(ref *openapi3.SchemaRef) {
	if ref == nil {
		return
	}
	if s := ref.Value; len(s.Properties) > 0 {
		s.AdditionalProperties.Has = new(bool)
		for _, property := range s.Properties {
			closeSchema(property)
		}
	} else {
		closeSchema(s.Items)
	}
}

// decodeEvent returns the first event of a stream: the contract describes an event.
func decodeEvent(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	text, err := io.ReadAll(body)
	event := map[string]any{}
	first, _, _ := strings.Cut(string(text), "\n\n")
	for line := range strings.Lines(first) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		event[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && name == "retry" {
			event[name] = float64(n)
		}
	}
	return event, err
}

func readContract() (*openapi3.T, error) {
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	return spec, spec.Validate(context.Background())
}

// operations calls do with each operation of the contract, and its parameters.
func operations(t *testing.T, do func(method, path string, o *openapi3.Operation, parameters openapi3.Parameters)) {
	t.Helper()
	spec, err := readContract()
	stage.Must(t, err)
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			do(method, path, o, slices.Concat(item.Parameters, o.Parameters))
		}
	}
}

// fits fails the test unless openapi.yaml describes the answer and, if the request succeeded, the request.
func fits(t testing.TB, r *http.Request, got reply) {
	t.Helper()
	if r.Method == http.MethodOptions || r.Method == http.MethodHead { // the contract does not describe these methods
		return
	}
	router, err := contract()
	stage.Must(t, err)
	route, params, err := router.FindRoute(r)
	if err != nil {
		if media := got.header.Get("Content-Type"); media != "application/problem+json" {
			t.Errorf("%s %s answers %d as %q", r.Method, r.URL, got.status, media)
		}
		return
	}
	if r.GetBody != nil {
		r.Body, _ = r.GetBody()
	}
	asked := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if got.status < 300 && r.ContentLength > 0 {
		if err := openapi3filter.ValidateRequest(context.Background(), asked); err != nil {
			t.Errorf("%s %s was taken and openapi.yaml forbids it: %v", r.Method, r.URL, err)
		}
	}
	if route.Path == "/openapi.yaml" {
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: got.status, Header: got.header,
		Body: io.NopCloser(bytes.NewReader(got.body)), Options: asked.Options,
	})
	if err != nil {
		t.Errorf("%s %s answered %d %s: %v", r.Method, r.URL, got.status, got.body, err)
	}
}

func TestTheRoutesAndTheContractListTheSameOperations(t *testing.T) {
	var described []string
	operations(t, func(method, path string, _ *openapi3.Operation, _ openapi3.Parameters) {
		described = append(described, method+" "+path)
	})
	served := open(t).server.Operations()
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(described, served); diff != "" {
		t.Errorf("openapi.yaml (-) and routes.go (+) differ:\n%s", diff)
	}
}

func TestTheContractIsServedAsItIsAndTheRootNamesIt(t *testing.T) {
	want, err := os.ReadFile("openapi.yaml")
	stage.Must(t, err)
	s := open(t)
	if got := s.call("GET", "/openapi.yaml", ""); got.status != 200 || !bytes.Equal(got.body, want) {
		t.Errorf("it answers %d and %d bytes of %d", got.status, len(got.body), len(want))
	}
	if r := s.call("GET", "/", "").want(t, 200, ""); !strings.Contains(string(r.body), "firstcome") || !strings.Contains(string(r.body), "/openapi.yaml") {
		t.Errorf("the root says %s", r.body)
	}
}

// TestTheContractSaysWhatEachValueMayBe walks every schema for the sake of client generators: a nullable has a type, every integer a format, and
// every value of a request bounds.
func TestTheContractSaysWhatEachValueMayBe(t *testing.T) {
	spec, err := readContract()
	stage.Must(t, err)
	if len(spec.Servers) == 0 {
		t.Error("there are no servers")
	}
	seen := 0
	var walk func(at string, request bool, s *openapi3.SchemaRef)
	walk = func(at string, request bool, ref *openapi3.SchemaRef) {
		if ref == nil {
			return
		}
		seen++
		s := ref.Value
		integer, text := s.Type.Is("integer"), s.Type.Is("string")
		switch {
		case s.Nullable && s.Type == nil:
			t.Errorf("%s: nullable without a type", at)
		case integer && s.Format == "":
			t.Errorf("%s: an integer without a format", at)
		case integer && request && (s.Min == nil || s.Max == nil):
			t.Errorf("%s: an integer of a request without bounds", at)
		case text && request && s.MaxLength == nil && s.Pattern == "" && s.Enum == nil && s.Format == "" && !unbounded[at]:
			t.Errorf("%s: a text of a request without bounds", at)
		}
		for name, property := range s.Properties {
			walk(at+"."+name, request, property)
		}
		// Each generator of clients makes something else of these, or nothing.
		switch {
		case len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil:
			t.Errorf("%s: a schema that is made of others", at)
		case slices.Contains(s.Enum, nil):
			t.Errorf("%s: null in an enum", at)
		case !request && s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has:
			t.Errorf("%s: an answer that may not grow", at)
		}
		walk(at+"[]", request, s.Items)
	}
	operations(t, func(method, path string, o *openapi3.Operation, parameters openapi3.Parameters) {
		at := method + " " + path
		for _, p := range parameters {
			walk(at+" "+p.Value.Name, true, p.Value.Schema)
		}
		if o.RequestBody != nil {
			for _, media := range o.RequestBody.Value.Content {
				walk(at, true, media.Schema)
			}
		}
		taken := map[string]bool{}
		for status, response := range o.Responses.Map() {
			for name, media := range response.Value.Content {
				walk(at+" "+status, false, media.Schema)
				if status < "300" && name == "application/json" {
					taken[media.Schema.Ref] = true
				}
			}
		}
		if len(taken) > 1 { // clients in Java have one type for all of them
			t.Errorf("%s: its 2xx are of %v", at, taken)
		}
	})
	if seen < 500 {
		t.Errorf("only %d schemas were seen", seen)
	}
}

// unbounded are the texts of requests that have no bounds.
var unbounded = map[string]bool{
	"GET /v1/campaigns after": true, "GET /v1/users/{user_id}/coupons after": true, "PATCH /v1/campaigns/{id} If-Match": true,
	"GET /v1/campaigns/{id}/coupons code": true, "GET /v1/campaigns/{id}/coupons tz": true, "GET /readyz verbose": true,
}

// TestTheContractHasWhatEveryOperationMayAnswer: each operation lists an unreadable path or query, unknown parameters, and a fault of firstcome. An
// operation with credentials also lists what may be wrong with them, and that firstcome cannot check them.
func TestTheContractHasWhatEveryOperationMayAnswer(t *testing.T) {
	operations(t, func(method, path string, o *openapi3.Operation, _ openapi3.Parameters) {
		want := []string{"400", "422", "500"}
		if o.Security == nil {
			want = append(want, "401", "403", "429", "503")
		}
		for _, status := range want {
			if o.Responses.Value(status) == nil {
				t.Errorf("%s %s: there is no %s", method, path, status)
			}
		}
	})
}

func TestABodyThatMayBeEmptyIsDocumentedSo(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	operations(t, func(method, path string, o *openapi3.Operation, _ openapi3.Parameters) {
		if o.RequestBody == nil {
			return
		}
		r := s.call(method, fillIn(path), "")
		missing := r.status == 400 || r.status == 422
		if documented := o.RequestBody.Value.Required; documented != missing && o.OperationID != "claim" {
			t.Errorf("%s %s without a body answers %d %s, and openapi.yaml says required: %t", method, path, r.status, r.body, documented)
		}
	})
	s.create(`{"id":"d","name":"n","quantity":9}`)
	if d := s.call("PATCH", "/v1/campaigns/d", "").want(t, 200, ""); d.number("version") != 1 {
		t.Errorf("an empty change is one: %s", d.body)
	}
}
