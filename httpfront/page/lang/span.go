package lang

// AppendMinutes appends a span of whole minutes in at most two units: "5
// minutes", "1 hour and 5 minutes", "2 days and 3 hours". Beyond a day the
// minutes are rounded up to hours. Less than 1 is "less than a minute".
func (l *Language) AppendMinutes(dst []byte, minutes int) []byte {
	switch {
	case minutes < 1:
		return append(dst, l.texts[LessThanMinute]...)
	case minutes < 60:
		return l.appendCount(dst, countMinutes, minutes)
	case minutes < 24*60:
		return l.appendUnits(dst, countHours, minutes/60, countMinutes, minutes%60)
	}
	hours := upToHours(minutes)
	return l.appendUnits(dst, countDays, hours/24, countHours, hours%24)
}

// appendUnits appends n of a unit and m of a smaller one, which is left out if m
// is 0.
func (l *Language) appendUnits(dst []byte, unit count, n int, smaller count, m int) []byte {
	if m == 0 {
		return l.appendCount(dst, unit, n)
	}
	return l.fill(dst, &l.joints[jointSpan], filling{kind: aCount, unit: unit, n: n}, filling{kind: aCount, unit: smaller, n: m})
}

// AppendRange appends the span from low to high minutes: "about 10 to 25
// minutes", "about 45 minutes to 1 hour and 30 minutes". If the two read the
// same it is that span alone, as AppendMinutes writes it. The order of the two
// does not matter, and a low of less than 1 counts as 1.
func (l *Language) AppendRange(dst []byte, low, high int) []byte {
	low, high = max(min(low, high), 1), max(low, high)
	switch {
	case high <= low, low >= 24*60 && upToHours(low) == upToHours(high):
		return l.AppendMinutes(dst, high)
	case high < 60:
		return l.fill(dst, l.form(countRange, high), filling{kind: aNumber, n: low}, filling{kind: aNumber, n: high})
	}
	return l.fill(dst, &l.joints[jointRange], filling{kind: aSpan, n: low}, filling{kind: aSpan, n: high})
}

func upToHours(minutes int) int { return minutes/60 + min(minutes%60, 1) }

// AppendTab appends a short title for the tab of a visitor with a position: "#12
// · You are in line". The title is one of the texts, or the caller's own, which
// is appended as it is.
func (l *Language) AppendTab(dst []byte, position int, title string) []byte {
	return l.fill(dst, &l.joints[jointTab], filling{kind: aNumber, n: position}, filling{kind: aText, text: title})
}
