package proxy

import "net/http"

// LivePath answers 200 while the process serves. It is the one path of the reverse door that is not the upstream's, and the one of the forward
// door that is served at all.
const LivePath = "/.remora/livez"

// liveServer tells a Remora from another program that answers 200 to whatever it is asked.
const liveServer = "Remora"

func live(w http.ResponseWriter) {
	h := w.Header()
	h["Server"] = []string{liveServer}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// IsLive says whether an answer to a request for LivePath is that of a Remora that serves.
func IsLive(answer *http.Response) bool {
	return answer.StatusCode == http.StatusOK && answer.Header.Get("Server") == liveServer
}
