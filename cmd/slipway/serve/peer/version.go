package peer

import (
	"cmp"
	"net/http"
	"strconv"

	"slipway.dev/slipway/inventory"
)

// Version is the version of the link: of its paths and headers, and of the questions and answers of all packages that use it. While an
// admin updates one instance after the other, an old and a new one ask each other. So a change keeps the version only if both still
// understand each other: a field more does, because the other end ignores it. Any other change needs the next version. Instances with
// different versions refuse each other, and the changelog has to say so.
const Version = 1

// versionHeader is in each request of an instance.
const versionHeader = "Slipway-Link"

// checkVersion refuses a request of an instance in another version than ours. The error is Unavailable, so machines and people ask again
// until both instances run the same program.
func checkVersion(r *http.Request) error {
	theirs := inventory.Clean(r.Header.Get(versionHeader), 20)
	if theirs == strconv.Itoa(Version) {
		return nil
	}
	return inventory.Errorf(inventory.Unavailable, "this instance speaks version %d of the link between instances, and the one that asks version %s",
		Version, cmp.Or(theirs, "0")).
		WithHint("they run different versions of Slipway: install the same one on all instances; slipway instance list shows them")
}
