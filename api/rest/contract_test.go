package rest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
)

// contract is the contract of this face.
var contract = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.Contract)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

// open are the routes that need no key, and elsewhere those that the program
// serves besides this package.
var (
	open      = []string{"GET /openapi.yaml", "GET /reference"}
	elsewhere = []string{"GET /livez", "GET /readyz", "GET /startupz"}
	keyed     = []string{"GET /metrics"} // served elsewhere, too
)

// exercised has the operations that tests have called, with the statuses that
// they were answered with.
var exercised = struct {
	sync.Mutex
	statuses map[string]map[int]int
}{statuses: map[string]map[int]int{}}

// TestMain fails a run of all tests in which a route was never called, or never
// with success.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	all := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	if code == 0 && all {
		for pattern := range routes() {
			statuses := exercised.statuses[operationName(pattern)]
			if !slices.ContainsFunc(slices.Collect(maps.Keys(statuses)), func(status int) bool { return status < 300 }) {
				fmt.Printf("FAIL: no test has called %s with success\n", pattern)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// operationName returns a pattern of the mux as the contract writes it.
func operationName(pattern string) string { return strings.ReplaceAll(pattern, "...}", "}") }

func TestContractHasTheRoutes(t *testing.T) {
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			name := method + " " + path
			described = append(described, name)
			free := o.Security != nil && len(*o.Security) == 0
			if free != (slices.Contains(open, name) || slices.Contains(elsewhere, name)) {
				t.Errorf("%s: the contract and the server disagree on whether it needs a key", name)
			}
		}
	}
	for pattern := range routes() {
		served = append(served, operationName(pattern))
	}
	served = append(append(append(served, open...), elsewhere...), keyed...)
	slices.Sort(described)
	slices.Sort(served)
	for _, name := range served {
		if !slices.Contains(described, name) {
			t.Errorf("%s is served and not described", name)
		}
	}
	for _, name := range described {
		if !slices.Contains(served, name) {
			t.Errorf("%s is described and not served", name)
		}
	}
}

// checkContract holds a request and its answer against the contract. A request
// that was answered with success must be one that the contract allows.
func (r *rig) checkContract(t testing.TB, req *http.Request, body []byte, a answer) {
	t.Helper()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	_, pattern := r.rest.mux.Handler(req)
	if pattern == "" { // a problem all the same
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && a.status != http.StatusForbidden {
			t.Errorf("%s: status %d without a route", a.what, a.status)
		}
		if a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: not a problem: %s", a.what, a.body)
		}
		return
	}
	method, path, _ := strings.Cut(operationName(pattern), " ")
	item := doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		t.Errorf("%s %s is not in the contract", method, path)
		return
	}
	exercised.Lock()
	if exercised.statuses[method+" "+path] == nil {
		exercised.statuses[method+" "+path] = map[int]int{}
	}
	exercised.statuses[method+" "+path][a.status]++
	exercised.Unlock()
	copied := req.Clone(context.Background())
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	in := &openapi3filter.RequestValidationInput{
		Request: copied, PathParams: pathParams(pattern, req.URL.Path),
		Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true},
	}
	if a.status < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			t.Errorf("%s: accepted, but not by the contract: %v\n%s", a.what, err, body)
		}
	}
	out := (&openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.header, Options: in.Options,
	}).SetBodyBytes([]byte(a.body))
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("%s: status %d is not as the contract says: %v\n%.2000s", a.what, a.status, err, a.body)
	}
}

// pathParams returns the values of a pattern's wildcards.
func pathParams(pattern, path string) map[string]string {
	out := map[string]string{}
	_, pattern, _ = strings.Cut(pattern, " ")
	have := strings.Split(path, "/")
	for i, part := range strings.Split(pattern, "/") {
		name, wild := strings.CutPrefix(part, "{")
		name, rest := strings.CutSuffix(strings.TrimSuffix(name, "}"), "...")
		switch {
		case !wild || i >= len(have):
		case rest:
			out[name] = strings.Join(have[i:], "/")
		default:
			out[name] = have[i]
		}
	}
	return out
}

// The objects of the contract have exactly the members of the Go types that are
// sent and read, and the members that are always there are required.
func TestContractHasTheMembersOfTheTypes(t *testing.T) {
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	metrics := reflect.TypeFor[api.Metrics]()
	part := func(name string) reflect.Type {
		f, ok := metrics.FieldByName(name)
		if !ok {
			t.Fatal(name)
		}
		return f.Type
	}
	for name, typ := range map[string]reflect.Type{
		"Problem": reflect.TypeFor[problem.Problem](), "Memory": reflect.TypeFor[api.Memory](), "Uses": reflect.TypeFor[api.Uses](),
		"Memories": reflect.TypeFor[api.Memories](), "Draft": reflect.TypeFor[api.Draft](), "Added": reflect.TypeFor[api.Added](),
		"Patch": reflect.TypeFor[api.Patch](), "Removed": reflect.TypeFor[api.Removed](), "Change": reflect.TypeFor[api.Change](),
		"History": reflect.TypeFor[api.History](), "Original": reflect.TypeFor[api.Original](), "Search": reflect.TypeFor[api.Search](),
		"Part": reflect.TypeFor[api.Part](), "Found": reflect.TypeFor[api.Found](), "Turned": reflect.TypeFor[api.Turned](),
		"Results": reflect.TypeFor[api.Results](), "Question": reflect.TypeFor[api.Question](), "Answer": reflect.TypeFor[api.Answer](),
		"ContextRequest": reflect.TypeFor[api.ContextRequest](), "ConversationSummary": reflect.TypeFor[api.Conversation](),
		"Context": reflect.TypeFor[api.Context](), "Resource": reflect.TypeFor[api.Resource](), "Entry": reflect.TypeFor[api.Entry](),
		"Entries": reflect.TypeFor[api.EntryPage](), "EntryDraft": reflect.TypeFor[api.EntryDraft](), "Message": reflect.TypeFor[api.Message](),
		"Audit": reflect.TypeFor[audit](), "ImportReport": reflect.TypeFor[api.ImportReport](), "Person": reflect.TypeFor[api.User](),
		"Users": reflect.TypeFor[api.Users](), "Receipt": reflect.TypeFor[api.Receipt](), "Exchange": reflect.TypeFor[api.Exchange](),
		"Exchanges": reflect.TypeFor[api.Exchanges](), "Insertion": reflect.TypeFor[receipt.Insertion](), "Span": reflect.TypeFor[fence.Span](),
		"Candidate": reflect.TypeFor[receipt.Candidate](), "Usage": reflect.TypeFor[receipt.Usage](), "Times": reflect.TypeFor[receipt.Times](),
		"Money": reflect.TypeFor[api.Money](), "RecentExchanges": reflect.TypeFor[api.RecentExchanges](), "Said": reflect.TypeFor[api.Said](),
		"Benefit": reflect.TypeFor[api.Benefit](), "Totals": reflect.TypeFor[api.Totals](), "Point": reflect.TypeFor[api.Point](),
		"Latency": reflect.TypeFor[api.Latency](), "Percentiles": reflect.TypeFor[api.Percentiles](),
		"Metrics": metrics, "JobMetrics": part("Jobs"), "MemoryMetrics": part("Memories"), "AuditMetrics": part("Audits"),
		"RejectionMetrics": part("Rejections"), "HealthMetrics": part("Health"), "ReceiptMetrics": part("Receipts"),
		"Merged": reflect.TypeFor[api.Merged](), "Sources": reflect.TypeFor[api.Sources](),
		"SourceCount": reflect.TypeFor[api.SourceCount](), "Contradictions": reflect.TypeFor[api.Contradictions](),
		"Contradiction": reflect.TypeFor[api.Contradiction](), "ForgetRequest": reflect.TypeFor[api.ForgetRequest](),
		"SystemMetrics": reflect.TypeFor[api.Health](), "Setting": reflect.TypeFor[api.Setting](), "LoginLink": reflect.TypeFor[api.LoginLink](),
	} {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			t.Errorf("the contract has no %s", name)
			continue
		}
		always := map[string]bool{}
		members(typ, always)
		for member, required := range always {
			if schema.Value.Properties[member] == nil {
				t.Errorf("%s: the contract lacks %s", name, member)
			}
			if read[name] {
				continue // what must be there is a rule of the verb
			}
			if required != slices.Contains(schema.Value.Required, member) {
				t.Errorf("%s: %s is always there: %v, which the contract denies", name, member, required)
			}
		}
		for member := range schema.Value.Properties {
			if _, ok := always[member]; !ok {
				t.Errorf("%s: no field has the name %s", name, member)
			}
		}
	}
}

// read are the objects that requests bring.
var read = map[string]bool{
	"Draft": true, "Patch": true, "Search": true, "Question": true, "ContextRequest": true, "EntryDraft": true, "Message": true,
}

// members adds the names by which JSON knows a type's fields, and whether they
// are always written.
func members(typ reflect.Type, into map[string]bool) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, rest, tagged := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			members(f.Type, into)
		case name == "-" || !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			into[name] = !tagged || !strings.Contains(rest, "omitempty")
		}
	}
}
