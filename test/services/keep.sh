# Runs a server, prints its process id, and ends it as soon as a line comes in or the
# input ends. The input ends at the latest when whoever started this is gone, and then
# nobody will need the server's directory any more.
#
#	sh -c "$(cat keep.sh)" keep DIRECTORY SIGNAL COMMAND...
directory=$1 signal=$2
shift 2
"$@" >>"$directory/log" 2>&1 &
echo $!
exec >/dev/null 2>&1
read -r _
ended=$?
kill -s "$signal" $!
kill -s CONT $!
wait
[ "$ended" -eq 0 ] && exit
# What the server had started may need a moment longer than the server itself.
for _ in 1 2 3 4 5; do
	rm -rf "$directory" && exit
	sleep 1
done
