package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestDataThatPassedAreCheckedAgainForAnotherVersionAndAnotherObject(t *testing.T) {
	key := types.NamespacedName{Namespace: "team", Name: "web"}
	var b Bootstraps
	b.Pass(key, "owner-1", "7")
	for _, c := range []struct {
		owner, version string
		want           bool
	}{{"owner-1", "7", true}, {"owner-1", "8", false}, {"owner-2", "7", false}} {
		if got := b.HasPassed(key, c.owner, c.version); got != c.want {
			t.Errorf("%s with version %s has passed: %t", c.owner, c.version, got)
		}
	}
	b.Ask(key)
	if b.Forget(key); b.IsAsked(key) || b.HasPassed(key, "owner-1", "7") {
		t.Error("an object that is gone is remembered")
	}
}
