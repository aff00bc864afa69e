// Prints Kafka's error codes, a line each: code, name, whether a client may retry.
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

class PrintErrors {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.println(error.code() + " " + error + " " + (error.exception() instanceof RetriableException));
        }
    }
}
