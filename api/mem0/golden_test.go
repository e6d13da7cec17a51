package mem0

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
)

var update = flag.Bool("update", false, "write the golden answers anew")

var (
	idPattern   = regexp.MustCompile(`"(f?[0-9a-f]{32}(?:\.\d+)?|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(-\d+)?"`)
	timePattern = regexp.MustCompile(`"20\d\d-\d\d-\d\d(T\d\d:\d\d:\d\d\.\d{3}Z)?"`)
	tookPattern = regexp.MustCompile(`"(latency|score)": [0-9.e-]+`)
)

// The shapes of all answers, which clients read. Ids have numbers, and times are
// left out.
func TestAnswers(t *testing.T) {
	in := start(t, identity.TenantAuto)
	var out bytes.Buffer
	ids := map[string]string{}
	numbered := func(s string) string {
		m := idPattern.FindStringSubmatch(s)
		if ids[m[1]] == "" {
			ids[m[1]] = fmt.Sprint("ID", len(ids)+1)
		}
		return `"` + ids[m[1]] + m[2] + `"`
	}
	try := func(method, path string, body any) any {
		a := in.do(adminToken, method, path, body)
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, a.body, "", "  "); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
		}
		text := idPattern.ReplaceAllStringFunc(pretty.String(), numbered)
		text = timePattern.ReplaceAllString(tookPattern.ReplaceAllString(text, `"$1": 0`), `"TIME"`)
		for id, number := range ids {
			path = strings.ReplaceAll(path, id, number)
		}
		fmt.Fprintf(&out, "## %s %s -> %d\n\n%s\n", method, path, a.status, text)
		var v any
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	try("GET", "/v1/ping/", nil)
	event := try("POST", "/v3/memories/add/", obj{
		"messages": say("I'm a vegetarian and allergic to nuts.", "Noted.", "The pool opens at seven in the morning.", "Good."), "user_id": "ann", "agent_id": "coach", "app_id": "gym", "run_id": "r1",
		"metadata": obj{"source": "chat"},
	}).(obj)["event_id"].(string)
	in.settled(adminToken, event)
	try("GET", "/v1/event/"+event+"/", nil)
	try("GET", "/v1/events/", nil)
	try("POST", "/v3/memories/?page=1&page_size=1", obj{"filters": obj{"user_id": "ann"}})
	try("POST", "/v2/memories/", obj{"filters": obj{"user_id": "ann"}, "fields": []string{"memory", "metadata"}})
	try("POST", "/v3/memories/search/", obj{"query": "nuts", "filters": obj{"user_id": "ann"}})
	id := results(try("POST", "/v3/memories/add/", obj{"messages": say("The sauna is closed."), "infer": false}))[0]["id"].(string)
	try("GET", "/v1/memories/"+id+"/", nil)
	try("PUT", "/v1/memories/"+id+"/", obj{"text": "The sauna is open.", "metadata": obj{"by": []string{"ann"}}})
	try("PUT", "/memories/"+id, obj{"text": "The sauna is hot."})
	try("POST", "/v1/feedback/", obj{"memory_id": id, "feedback": "POSITIVE", "feedback_reason": "right"})
	try("PUT", "/v1/batch/", obj{"memories": []obj{{"memory_id": id, "text": "The sauna is cold."}}})
	try("GET", "/v1/memories/"+id+"/history/", nil)
	try("POST", "/v1/memories/", obj{"messages": say("The towels are white."), "infer": false})
	try("POST", "/memories", obj{"messages": say("The lockers are grey."), "infer": false})
	try("GET", "/memories?user_id=ann", nil)
	try("POST", "/search", obj{"query": "lockers"})
	try("GET", "/v1/entities/", nil)
	try("GET", "/entities", nil)
	export := try("POST", "/v1/exports/", obj{"schema": obj{}, "filters": obj{"user_id": "ann"}}).(obj)["id"]
	try("POST", "/v1/exports/get/", obj{"memory_export_id": export})
	try("DELETE", "/v1/memories/"+id+"/", nil)
	try("DELETE", "/v1/memories/?user_id=ann", nil)
	try("DELETE", "/v2/entities/user/ann/", nil)
	try("POST", "/v3/memories/", obj{"filters": obj{"NOT": []obj{}}})
	try("GET", "/v1/memories/"+id+"/", nil)
	try("POST", "/v1/summary/", obj{})

	path := filepath.Join("testdata", "answers.golden")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("answers (-want +got), -update writes them:\n%s", diff)
	}
}
