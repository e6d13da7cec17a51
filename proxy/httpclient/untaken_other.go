//go:build !linux

package httpclient

// markTaken and untaken need what only Linux reports about a connection.
func (c *conn) markTaken() {}

func (c *conn) untaken() bool { return false }
