package api_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"
)

// contract reads openapi.yaml once.
var contract = sync.OnceValues(func() (routers.Router, error) {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.PlainBodyDecoder)
	spec, err := readContract()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(spec)
})

func readContract() (*openapi3.T, error) {
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	return spec, spec.Validate(context.Background())
}

// fits fails the test unless openapi.yaml describes the answer, and the request
// if it was taken.
func fits(t testing.TB, r *http.Request, got reply) {
	t.Helper()
	router, err := contract()
	if err != nil {
		t.Fatal(err)
	}
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
	spec, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	served := open(t).server.Operations()
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(described, served); diff != "" {
		t.Errorf("openapi.yaml (-) and routes.go (+) differ:\n%s", diff)
	}
}

func TestTheContractIsServedAsItIs(t *testing.T) {
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := open(t).call("GET", "/openapi.yaml", "")
	if got.status != 200 || !bytes.Equal(got.body, want) {
		t.Errorf("it answers %d and %d bytes of %d", got.status, len(got.body), len(want))
	}
}
