package rest

import "net/http"

func (c *call) settings() error {
	list, err := c.service.Settings(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"settings": list})
}

func (c *call) loginLink() error {
	link, err := c.service.LoginLink(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	return c.write(http.StatusCreated, link)
}
