package rig

import (
	"errors"
	"testing"
)

func TestTheFirstStepThatFailsIsTheLast(t *testing.T) {
	why := errors.New("why")
	var did []int
	err := Try(func() {
		did = append(did, Got(1, nil))
		Must(nil)
		did = append(did, Got(2, why))
	})
	if !errors.Is(err, why) || len(did) != 1 {
		t.Errorf("got %v after steps %v", err, did)
	}
	if err := Try(func() {}); err != nil {
		t.Errorf("nothing failed, and got %v", err)
	}
}

func TestOtherPanicsStay(t *testing.T) {
	defer func() {
		if p := recover(); p != "other" {
			t.Errorf("got %v", p)
		}
	}()
	t.Error(Try(func() { panic("other") }))
}
