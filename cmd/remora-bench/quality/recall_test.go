package quality

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

func TestJudgementByHand(t *testing.T) {
	j := newJudgement()
	j.add([]int{7, 1, 9, 2}, map[int]bool{1: true, 2: true, 3: true})
	// Gold at ranks 2 and 4 of three: DCG = 1/log2(3) + 1/log2(5) = 1.06160,
	// ideal = 1 + 1/log2(3) + 1/2 = 2.13093.
	for k, want := range map[int]float64{1: 0, 5: 2.0 / 3, 10: 2.0 / 3, 50: 2.0 / 3} {
		if got := j.frac[k]; math.Abs(got-want) > 1e-9 {
			t.Errorf("frac@%d: got %g, want %g", k, got, want)
		}
	}
	if j.any[1] != 0 || j.any[5] != 1 || j.all[50] != 0 {
		t.Errorf("got any@1 %g, any@5 %g, all@50 %g, want 0, 1, 0", j.any[1], j.any[5], j.all[50])
	}
	if math.Abs(j.ndcg-1.0615995/2.1309298) > 1e-5 || j.mrr != 0.5 {
		t.Errorf("got NDCG %g, MRR %g, want %g, 0.5", j.ndcg, j.mrr, 1.0615995/2.1309298)
	}
}

const tinyLocomo = `[{"sample_id":"s1","conversation":{"speaker_a":"Ann","speaker_b":"Bob",
"session_1_date_time":"1:56 pm on 8 May, 2023","session_1":[
 {"speaker":"Ann","dia_id":"D1:1","text":"I adopted a parrot named Kiwi."},{"speaker":"Bob","dia_id":"D1:2","text":"Lovely!","blip_caption":"a green bird"}],
"session_2_date_time":"9:00 am on 9 June, 2023","session_2":[{"speaker":"Bob","dia_id":"D2:1","text":"My boat sank near the harbour."}]},
"qa":[{"question":"What pet did Ann adopt?","evidence":["D1:1; D1:2"],"category":4},{"question":"What sank?","evidence":["D2:1"],"category":1}]}]`

func tinyFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "tiny.json")
	if err := os.WriteFile(path, []byte(tinyLocomo), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadLocomo(t *testing.T) {
	d, err := readDataset(tinyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	want := dataset{Name: "tiny", Convs: []conversation{{ID: "s1",
		Messages: []utterance{
			{ID: "D1:1", Session: "session_1", Speaker: "Ann", Role: "user", Text: "I adopted a parrot named Kiwi.", Date: "1:56 pm on 8 May, 2023"},
			{ID: "D1:2", Session: "session_1", Speaker: "Bob", Role: "user", Text: "Lovely!", Caption: "a green bird", Date: "1:56 pm on 8 May, 2023"},
			{ID: "D2:1", Session: "session_2", Speaker: "Bob", Role: "user", Text: "My boat sank near the harbour.", Date: "9:00 am on 9 June, 2023"},
		},
		Questions: []question{
			{Text: "What pet did Ann adopt?", Category: "single-hop", Evidence: []int{0, 1}},
			{Text: "What sank?", Category: "multi-hop", Evidence: []int{2}},
		}}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestRecallAndGateCommands(t *testing.T) {
	path := tinyFile(t)
	var out bytes.Buffer
	if err := RunRecall(context.Background(), []string{"-data", path, "-json"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if got["n"] != 2.0 || got["dataset"] != "tiny" || got["unit"] != "turn" || got["mrr"] != 1.0 {
		t.Errorf("got %v, want two questions answered first", got)
	}
	out.Reset()
	if err := RunGate(context.Background(), []string{"-data", path, "-json"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if got["answerable"] != 2.0 || got["answerable_kept"] != 1.0 {
		t.Errorf("got %v, want both answerable questions kept", got)
	}
}

// Other weights rank otherwise, and a weight that does not exist is named.
func TestRecallCommandWithWeights(t *testing.T) {
	data, weights := tinyFile(t), filepath.Join(t.TempDir(), "weights.json")
	run := func(content string) (string, error) {
		if err := os.WriteFile(weights, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := RunRecall(t.Context(), []string{"-data", data, "-json", "-weights", weights}, &out, &out)
		return out.String(), err
	}
	found, err := run(`{"Phrase": 0.2}`)
	if err != nil || !strings.Contains(found, `"any@10":1`) {
		t.Errorf("got %s, %v", found, err)
	}
	if blind, err := run(`{"User": 0, "Assistant": 0, "Before1": 0, "After1": 0, "Before1Ask": 0, "After1Ask": 0, "Session": 0}`); err != nil || strings.Contains(blind, `"any@10":1`) {
		t.Errorf("without any weight of a text got %s, %v", blind, err)
	}
	for content, want := range map[string]string{
		`{"Phrases": 1}`: "Phrases", `{"K1": 0}`: "weight K1", `{"UserB": 2}`: "weight UserB", `[]`: "weights.json", `{} {}`: "one JSON object",
	} {
		if _, err := run(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that names %s", content, err, want)
		}
	}
}

// With a server named, memories and questions get vectors before anything is
// measured.
func TestRecallCommandWithEmbeddings(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		var data []map[string]any
		for i, text := range ask.Input {
			asked.Add(1)
			v := make([]float64, 32)
			for _, letter := range text {
				v[letter%32]++
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer server.Close()
	var out bytes.Buffer
	args := []string{"-data", tinyFile(t), "-json", "-embeddings", server.URL, "-embedding-model", "letters"}
	if err := RunRecall(context.Background(), args, &out, &out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if d := cmp.Diff(map[string]any{"used": 2.0}, got["vectors"]); d != "" || got["n"] != 2.0 {
		t.Errorf("%s in %v", d, got)
	}
	if n := asked.Load(); n != 3+2+1+2 { // passages, facts of two of them, the query that loads, questions
		t.Errorf("the server was asked for %d texts, want 8", n)
	}
	server.Close()
	if err := RunRecall(context.Background(), args, &out, &out); err == nil {
		t.Error("a server that is down: got nil, want an error")
	}
	var usage cli.UsageError
	if err := RunRecall(context.Background(), args[:len(args)-2], &out, &out); !errors.As(err, &usage) {
		t.Errorf("no model: got %v, want a usage error", err)
	}
}

func TestScaleCommand(t *testing.T) {
	var out bytes.Buffer
	if err := RunScale(context.Background(), []string{"-memories", "1000", "-users", "1", "-queries", "10", "-json"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&out)
	rows := 0
	for dec.More() {
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if row["p50_us"].(float64) <= 0 || row["memories"].(float64) < 100 {
			t.Errorf("got %v, want figures", row)
		}
		rows++
	}
	if rows != 2 {
		t.Errorf("got %d rows, want 2", rows)
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	var sink bytes.Buffer
	for name, err := range map[string]error{
		"no data":   RunRecall(context.Background(), nil, &sink, &sink),
		"odd unit":  RunRecall(context.Background(), []string{"-data", "x", "-unit", "word"}, &sink, &sink),
		"no file":   RunGate(context.Background(), []string{"-data", filepath.Join(t.TempDir(), "none")}, &sink, &sink),
		"too small": RunScale(context.Background(), []string{"-memories", "5"}, &sink, &sink),
	} {
		if err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
}
