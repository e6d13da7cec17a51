package proxy

import (
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// keeps says whether part holds the bytes of whole alive.
func keeps(part, whole string) bool {
	at, start := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	return part != "" && start <= at && at < start+uintptr(len(whole))
}

// Ids live for a day, and are counted as what they say: they must not hold what they were cut out of.
func TestIDsAreCutOff(t *testing.T) {
	padded := "  id" + strings.Repeat(" ", 4<<10)
	if id := cleanID(padded); id != "id" || keeps(id, padded) {
		t.Errorf("%q keeps what it was trimmed from", id)
	}
	for _, value := range []string{
		"user_dev_account_acc_session_ses" + strings.Repeat("s", 4<<10),
		`{"account_uuid":"acc","pad":"` + strings.Repeat("p", 4<<10) + `"}`,
	} {
		s, err := parseSource("header:X-Ids#account_uuid")
		if err != nil {
			t.Fatal(err)
		}
		if id := s.read(http.Header{"X-Ids": {value}}, &dialect.Request{}); id != "acc" || keeps(id, value) {
			t.Errorf("%q keeps what it was read from", id)
		}
	}
}
