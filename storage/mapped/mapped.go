// Package mapped tells of the files that this process has mapped, and lets go of their pages.
package mapped
