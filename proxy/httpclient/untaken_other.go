//go:build !linux

package httpclient

// markTaken and untaken need what only Linux tells of a connection.
func (c *conn) markTaken() {}

func (c *conn) untaken() bool { return false }
