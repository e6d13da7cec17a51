package proxy

import (
	"net/http"
	"testing"
)

// TestIsLive: both doors tell that a Remora serves, the forward door without its token, too; a server that answers 200 to everything does not, nor
// does either door where something else is asked for.
func TestIsLive(t *testing.T) {
	r := newRig(t)
	cfg := DefaultForwardConfig()
	cfg.Listen, cfg.Token = "127.0.0.1:0", "hush-hush-hush-hush"
	forward, _ := startForward(t, cfg, r.h, nil)
	other := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }))
	for _, test := range []struct {
		url  string
		want bool
	}{
		{r.url + LivePath, true},
		{r.url + "/v1/models", false},
		{"http://" + forward + LivePath, true},
		{"http://" + forward + "/", false},
		{other + LivePath, false},
	} {
		answer, err := http.Get(test.url)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := IsLive(answer); got != test.want {
			t.Errorf("%s: got %v, want %v", test.url, got, test.want)
		}
	}
}
