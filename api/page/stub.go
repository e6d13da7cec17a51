package page

import "net/http"

func (c *call) notYet(title, section string) error {
	b, err := c.begin(title, section)
	if err != nil {
		return err
	}
	c.render(http.StatusOK, "error", errorView{base: b, Status: 501, Detail: "Not here yet."})
	return nil
}
func (c *call) receipt() error  { return c.notYet("Receipt", "live") }
func (c *call) unwanted() error { return nil }
