// Package http1 reads HTTP/1.1: heads of requests and of answers, and the bodies behind them, by
// rules that leave one reading. It is given bytes and returns values; it knows of no connection, no
// room and no setting.
package http1
