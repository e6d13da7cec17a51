package mem0

import (
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/problem"
)

// route is a row of the table: a path with or without a slash at its end.
type route struct {
	method   string // "" = any
	segments []string
	do       verb
}

// routes is the table of all paths; :name stands for one segment, ... for any.
func routes() (table []route) {
	add := func(pattern string, do verb) {
		method, path, _ := strings.Cut(pattern, " /")
		table = append(table, route{method, strings.Split(path, "/"), do})
	}
	// What mem0 has and has no meaning here.
	for _, path := range []string{
		"v1/summary", "v1/stats", "v1/memories/events", "v1/entities/filters", "v1/users", "v1/agents", "v1/apps", "v1/runs",
		"v1/agent-rush/...", "v2/profiles/...", "v2/entities/:type/:name/profile", "api/v1/orgs/...", "api/v1/webhooks/...",
		"api/v1/auth/...", "configure", "configure/providers", "generate-instructions", "api-keys/...", "auth/...", "requests/...",
	} {
		add(" /"+path, (*call).unavailable)
	}
	// The hosted API.
	add("GET /v1/ping", (*call).ping)
	add("POST /v3/memories/add", adding(shapeEvent))
	add("POST /v3/memories", listing(shapePage))
	add("POST /v3/memories/search", searching(shapeResults))
	add("POST /v2/memories", listing(shapeList))
	add("POST /v2/memories/search", searching(shapeList))
	add("POST /v1/memories", adding(shapeList))
	add("GET /v1/memories", listing(shapeList))
	add("POST /v1/memories/search", searching(shapeList))
	add("DELETE /v1/memories", deletingAll("Memories deleted successfully!", true))
	add("GET /v1/memories/:id", (*call).get)
	add("PUT /v1/memories/:id", updating(""))
	add("DELETE /v1/memories/:id", (*call).delete)
	add("GET /v1/memories/:id/history", (*call).history)
	add("PUT /v1/batch", asAdmin(adminCall.batchUpdate))
	add("DELETE /v1/batch", asAdmin(adminCall.batchDelete))
	add("GET /v1/entities", asAdmin(adminCall.entities))
	add("DELETE /v1/entities/:type/:name", asAdmin(adminCall.deleteEntity))
	add("GET /v2/entities/:type/:name", asAdmin(adminCall.entity))
	add("DELETE /v2/entities/:type/:name", asAdmin(adminCall.deleteEntity))
	add("GET /v1/event/:id", asAdmin(adminCall.event))
	add("GET /v1/events", asAdmin(adminCall.listEvents))
	add("POST /v1/exports", asAdmin(adminCall.createExport))
	add("POST /v1/exports/get", asAdmin(adminCall.getExport))
	add("POST /v1/feedback", asAdmin(adminCall.feedback))
	// The self-hosted server.
	add("POST /memories", adding(shapeResults))
	add("GET /memories", listing(shapeResults))
	add("DELETE /memories", deletingAll("All relevant memories deleted", true))
	add("GET /memories/:id", (*call).get)
	add("PUT /memories/:id", updating("Memory updated successfully!"))
	add("DELETE /memories/:id", (*call).delete)
	add("GET /memories/:id/history", (*call).history)
	add("POST /search", searching(shapeResults))
	add("GET /entities", asAdmin(adminCall.plainEntities))
	add("DELETE /entities/:type/:name", asAdmin(adminCall.deleteEntity))
	add("POST /reset", asAdmin(adminCall.reset))
	// The small API.
	add("POST /api/v1/memories", adding(shapeResults))
	add("GET /api/v1/memories", listing(shapeResults))
	add("DELETE /api/v1/memories", deletingAll("All memories deleted", false))
	add("POST /api/v1/memories/search", searching(shapeResults))
	add("GET /api/v1/memories/:id", (*call).get)
	add("DELETE /api/v1/memories/:id", (*call).delete)
	return table
}

// Shapes of answers: mem0 has changed them from version to version.
type shape int

const (
	shapeList    shape = iota // a list; a page if the request asks for one
	shapeResults              // an object with results, complete when it is sent
	shapePage                 // a page of results with links
	shapeEvent                // an event to ask for
)

// unavailable answers for what mem0 has and Remora has not.
func (c *call) unavailable() error {
	problem.New(http.StatusNotImplemented, "not-implemented", "mem0 has this, and it has no meaning here; see docs/mem0.md").Write(c.w)
	return nil
}

// ping says that the key is valid. There are no organizations and projects here.
func (c *call) ping() error {
	request.Write(c.w, http.StatusOK, map[string]any{"status": "ok", "org_id": nil, "project_id": nil, "user_email": nil})
	return nil
}
