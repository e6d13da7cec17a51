package rest

import "net/http"

func listSettings(c *call) error {
	list, err := c.service.Settings(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"settings": list})
}

func makeLoginLink(c *call) error {
	link, err := c.service.LoginLink(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	return c.write(http.StatusCreated, link)
}
